//! `scope_with(policy, async |s| …)`: a scope whose policy decides when it is over.

use core::future::Future;
use core::panic::Location;

use convoke_core::raw::sync::Arc;

use super::failures::{ChildFailure, FailureKind};
use super::handle::PolicyScope;
use super::rules::Policy;
use super::tally::{Enough, Ledger};
use crate::flow::NoReturn;
use crate::scope::{Scope, open};

/// Opens a scope with another policy than that of [`scope()`](crate::scope()): runs `body`, which starts
/// children with the [`PolicyScope`] it gets, and ends when body and children have ended. Children return a
/// `Result`. The policy decides when they have done enough; then the body and the other children are asked to
/// stop and awaited.
///
/// The policies are [`FirstError`](super::FirstError), [`WaitForAll`](super::WaitForAll),
/// [`FirstSuccess`](super::FirstSuccess), [`Quorum`](super::Quorum) and [`Supervise`](super::Supervise). For
/// another one, implement [`Policy`].
///
/// The body returns `()`, or a `Result<(), E>`, whose error counts as the failure of a child.
///
/// - *Completes with* the output of the policy, made from the results of the children. Stopped, if the body
///   was stopped, or the task is asked to stop.
/// - *If dropped*, the children are asked to stop, and the task waits for them before it ends.
/// - *Runs on*: the body, in the task that opened the scope; children, as tasks of their own on the same
///   executor, or on that of [`On`](super::On).
/// - *Panics* with the panic of the body or of the policy; and outside a task. A panic of a child is a
///   failure, which goes to the policy.
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
///     let fastest = scope_with(FirstSuccess, async |s| {
///         (1..=4).for_each(|n| s.spawn(ask(n)));
///     })
///     .await;
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
    // `Err(Enough)` is how a child stops the others. The output comes from the ledger.
    let _: Result<(), Enough> = open(executor, location, async move |s: Scope<Result<(), Enough>>| {
        let working = Ledger::body_works(&shared);
        let ended = body(PolicyScope::new(s, shared.clone())).await.into_result();
        let result = match ended {
            Ok(()) => Ok(()),
            Err(error) => {
                let kind = FailureKind::Error(error);
                shared.judge(Err(ChildFailure { name: Some("the body".into()), location, attempt: 1, kind }))
            }
        };
        drop(working);
        result
    })
    .await;
    ledger.output()
}

/// Output of the body of a scope with a policy: `()`, or a `Result<(), E>`, whose error counts as the failure
/// of a child.
#[diagnostic::on_unimplemented(
    message = "the body of a scope with a policy cannot return `{Self}`",
    label = "returns `{Self}`",
    note = "it returns `()`, or a `Result<(), {E}>`; the output of the scope is made from the results of its children"
)]
pub trait PolicyBody<E> {
    /// Converts the output to a `Result`.
    fn into_result(self) -> Result<(), E>;
}

impl<E> PolicyBody<E> for () {
    fn into_result(self) -> Result<(), E> {
        Ok(())
    }
}

/// A body that never returns, and is stopped when its children have done enough.
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
