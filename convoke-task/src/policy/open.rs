//! `scope_with(policy, async |s| …)`: a scope whose policy decides when it is over.

use core::future::Future;
use core::panic::Location;
use core::pin::Pin;
use core::task::{Context, Poll, ready};

use convoke_core::raw::FrameArc;
use pin_project_lite::pin_project;

use super::handle::PolicyScope;
use super::rules::Policy;
use super::tally::{Ledger, PolicyMet, Working};
use crate::flow::NoReturn;
use crate::scope::{ChildOrigin, FailureKind, ScopeFuture, open};

/// Opens a scope with another policy than that of [`scope()`](crate::scope()): runs `body`, which starts
/// children with the [`PolicyScope`] it gets, and ends when body and children have ended. Children return a
/// `Result`. The policy decides when they have done enough; then the body and the other children are asked to
/// stop and awaited.
///
/// Use this if not every failure of a child is to end the scope, or its result is made of theirs. Use
/// [`scope`](crate::scope()) if the first failure ends all.
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
///     "2 children have failed:\n  `server 1`: server 1 is away\n  \
///     `server 2`: server 2 is away",
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
    let location = Location::caller();
    let executor = policy.executor();
    let ledger = FrameArc::in_task(Ledger::new(policy));
    let scope = open(executor, location, |s| {
        let body = body(PolicyScope { scope: s, ledger: ledger.clone() });
        Body {
            future: Some(body),
            into_result: PolicyBody::into_result,
            working: Some(Ledger::body_works(&ledger)),
            ledger: ledger.clone(),
            location,
        }
    });
    PolicyFuture { scope, ledger }
}

pin_project! {
    /// Future of [`scope_with`]. The body's future is kept once: `async` blocks around it would keep it
    /// several times.
    struct PolicyFuture<F: Future, P, V, E> {
        #[pin]
        scope: ScopeFuture<F>,
        ledger: FrameArc<Ledger<P, V, E>>,
    }
}

impl<F, P, V, E> Future for PolicyFuture<F, P, V, E>
where
    F: Future<Output = Result<(), PolicyMet>>,
    P: Policy<V, E>,
{
    type Output = P::Output;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<P::Output> {
        let this = self.project();
        // `Err(PolicyMet)` is how a child stops the others. The output comes from the ledger.
        let _: Result<(), PolicyMet> = ready!(this.scope.poll(cx));
        Poll::Ready(this.ledger.output())
    }
}

pin_project! {
    /// The body of a scope with a policy, whose failure goes to the policy.
    struct Body<F: Future, P: Policy<V, E>, V, E> {
        #[pin]
        future: Option<F>,
        // A pointer instead of the bound `F::Output: PolicyBody<E>`: with the bound, the compiler cannot prove
        // that the future is `Send` if `E` has a lifetime, as `&'static str` does.
        into_result: fn(F::Output) -> Result<(), E>,
        working: Option<Working<P, V, E>>,
        ledger: FrameArc<Ledger<P, V, E>>,
        location: &'static Location<'static>,
    }
}

impl<F, P, V, E> Future for Body<F, P, V, E>
where
    F: Future,
    P: Policy<V, E>,
{
    type Output = Result<(), PolicyMet>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<(), PolicyMet>> {
        let mut this = self.project();
        let Some(body) = this.future.as_mut().as_pin_mut() else { panic!("polled after completion") };
        let ended = (this.into_result)(ready!(body.poll(cx)));
        // What the body owns is dropped before the policy judges.
        this.future.set(None);
        let result = match ended {
            Ok(()) => Ok(()),
            Err(error) => {
                let origin = ChildOrigin { name: Some("the body".into()), location: this.location };
                this.ledger.judge(Err(origin.failure(1, FailureKind::Error(error))))
            }
        };
        *this.working = None;
        Poll::Ready(result)
    }
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
