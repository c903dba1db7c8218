//! A child whose result goes to a listener: to the policy of its scope, or to the report of its supervisor.

use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll, ready};

use pin_project_lite::pin_project;

use crate::scope::{AttemptEnd, Caught, ChildFailure, ChildOrigin, FailureKind, PollCaught};

/// Hears of the results of children.
pub(super) trait Listener<V, E> {
    /// Output of the child, for the ordinary scope that it runs in.
    type Output;

    /// Takes the result of a child.
    fn hear(&mut self, result: Result<V, ChildFailure<E>>) -> Self::Output;
}

pin_project! {
    /// A child whose error or panic becomes a `ChildFailure`. Its listener hears of the result. The child's
    /// future is kept once: `async` blocks around it would keep it several times.
    pub(super) struct Reported<F: Future, L> {
        #[pin]
        child: Caught<F>,
        poll: PollCaught<F>,
        origin: ChildOrigin,
        listener: L,
    }
}

impl<F: Future, L> Reported<F, L> {
    pub(super) fn new(future: F, poll: PollCaught<F>, origin: ChildOrigin, listener: L) -> Self {
        Self { child: Caught::new(future), poll, origin, listener }
    }
}

impl<F, L, V, E> Future for Reported<F, L>
where
    F: Future<Output = Result<V, E>>,
    L: Listener<V, E>,
{
    type Output = L::Output;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<L::Output> {
        let this = self.project();
        let AttemptEnd { result, attempt } = ready!(this.child.poll(cx, *this.poll));
        let kind = match result {
            Ok(Ok(value)) => return Poll::Ready(this.listener.hear(Ok(value))),
            Ok(Err(error)) => FailureKind::Error(error),
            Err(panic) => FailureKind::Panicked(panic),
        };
        Poll::Ready(this.listener.hear(Err(this.origin.failure(attempt, kind))))
    }
}
