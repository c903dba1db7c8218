//! `scope_with(policy, async |s| …)`: a scope that is over when its policy says so.

use core::future::Future;
use core::panic::Location;

use convoke_core::raw::sync::Arc;

use super::failures::{Failure, FailureKind};
use super::handle::PolicyScope;
use super::rules::Policy;
use super::tally::{Enough, Ledger};
use crate::flow::NoReturn;
use crate::scope::{Scope, open};

/// Opens a scope with another policy than that of [`scope()`](crate::scope()): runs `body`, which starts children with the
/// [`PolicyScope`] it is given, and ends when body and children have ended. Children return a `Result`; the policy says when
/// enough has come of them, and then the others, and the body, are asked to stop and awaited.
///
/// The policies are [`FirstError`](super::FirstError), [`WaitForAll`](super::WaitForAll), [`FirstSuccess`](super::FirstSuccess),
/// [`Quorum`](super::Quorum) and [`Supervise`](super::Supervise); others implement [`Policy`].
///
/// The body returns `()`, or a `Result<(), E>`, whose error counts as the failure of a child.
///
/// - *Completes with* what the policy makes of the children's results. Stopped, if the body was, or the task is asked to.
/// - *If dropped*, the children are asked to stop, and the task waits for them before it ends.
/// - *Runs on*: the body, in the task that opened the scope; children, on the same executor as tasks of their own, or on
///   that of [`On`](super::On).
/// - *Panics* as the body does, and outside a task. A panic of a child is a failure, for the policy to judge.
///
/// ```
/// use convoke::prelude::*;
/// use convoke::scope::scope_with;
/// use convoke::scope::policy::{FirstSuccess, WaitForAll};
///
/// async fn ask(server: u32) -> Result<u32, String> {
///     if server == 3 { Ok(server) } else { Err(format!("server {server} is away")) }
/// }
///
/// let (fastest, all) = block_on(async {
///     let fastest = scope_with(FirstSuccess, async |s| (1..=4).for_each(|n| s.spawn(ask(n)))).await;
///     let all = scope_with(WaitForAll, async |s| {
///         for n in 1..=2 {
///             s.named(format!("server {n}")).spawn(ask(n));
///         }
///     })
///     .await;
///     (fastest, all)
/// })
/// .unwrap();
/// assert_eq!(fastest.unwrap(), 3);
/// assert_eq!(
///     all.unwrap_err().to_string(),
///     "2 children have failed:\n  `server 1`: server 1 is away\n  `server 2`: server 2 is away",
/// );
/// ```
#[track_caller]
pub fn scope_with<P, V, E, B, F>(policy: P, body: B) -> impl Future<Output = P::Output>
where
    P: Policy<V, E> + Send + Sync + 'static,
    V: Send + 'static,
    E: Send + 'static,
    B: FnOnce(PolicyScope<P, V, E>) -> F,
    F: Future<Output: PolicyBody<E>>,
{
    judge(policy, body, Location::caller())
}

async fn judge<P, V, E, B, F>(policy: P, body: B, location: &'static Location<'static>) -> P::Output
where
    P: Policy<V, E> + Send + Sync + 'static,
    V: Send + 'static,
    E: Send + 'static,
    B: FnOnce(PolicyScope<P, V, E>) -> F,
    F: Future<Output: PolicyBody<E>>,
{
    let executor = policy.executor();
    let ledger = Arc::new(Ledger::new(policy));
    let shared = ledger.clone();
    // That it was enough is said with an error, for that is what stops the others. It is no news to us.
    let _: Result<(), Enough> = open(executor, location, async move |s: Scope<Result<(), Enough>>| {
        let working = Ledger::body_works(&shared);
        let ended = body(PolicyScope::new(s, shared.clone())).await.into_result();
        let result = match ended {
            Ok(()) => Ok(()),
            Err(error) => {
                let kind = FailureKind::Error(error);
                shared.judge(Err(Failure { name: Some("the body".into()), location, attempt: 1, kind }))
            }
        };
        drop(working);
        result
    })
    .await;
    ledger.output()
}

/// What the body of a scope with a policy returns: nothing, or a `Result` with nothing in it, whose error is like a child's.
#[diagnostic::on_unimplemented(
    message = "the body of a scope with a policy cannot return `{Self}`",
    label = "returns `{Self}`",
    note = "it returns `()`, or a `Result<(), {E}>`; what the scope returns is made of what its children do"
)]
pub trait PolicyBody<E> {
    /// As a result.
    fn into_result(self) -> Result<(), E>;
}

impl<E> PolicyBody<E> for () {
    fn into_result(self) -> Result<(), E> {
        Ok(())
    }
}

/// A body that does not return: it waits until its children have done enough.
impl<E> PolicyBody<E> for NoReturn {
    fn into_result(self) -> Result<(), E> {
        self
    }
}

impl<E> PolicyBody<E> for Result<(), E> {
    fn into_result(self) -> Self {
        self
    }
}
