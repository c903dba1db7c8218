//! Futures whose panic is returned, so that a child can panic without ending the scope.

use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll};

use convoke_core::Panic;
use pin_project_lite::pin_project;

/// End of an attempt of a child, and the number of that attempt.
#[derive(Debug)]
pub struct AttemptEnd<T> {
    pub(crate) result: Result<T, Panic>,
    pub(crate) attempt: u32,
}

/// Function that polls the future of a child, and returns its panic.
pub(crate) type PollCaught<F> = fn(Pin<&mut F>, &mut Context<'_>) -> Poll<AttemptEnd<<F as Future>::Output>>;

/// Polls a future, and returns its panic.
pub(crate) fn poll_caught<F: Future>(
    future: Pin<&mut F>,
    cx: &mut Context<'_>,
) -> Poll<AttemptEnd<F::Output>> {
    let result = match Panic::catch(|| future.poll(cx)) {
        Ok(Poll::Pending) => return Poll::Pending,
        Ok(Poll::Ready(output)) => Ok(output),
        Err(panic) => Err(panic),
    };
    Poll::Ready(AttemptEnd { result, attempt: 1 })
}

pin_project! {
    /// A slot for a future whose panic is returned. The future is dropped before its result is returned.
    pub(crate) struct Caught<F> {
        #[pin]
        future: Option<F>,
    }
}

impl<F: Future> Caught<F> {
    pub(crate) fn new(future: F) -> Self {
        Self { future: Some(future) }
    }

    pub(super) fn empty() -> Self {
        Self { future: None }
    }

    /// Puts the next future into an empty slot.
    pub(super) fn set(self: Pin<&mut Self>, future: F) {
        self.project().future.set(Some(future));
    }

    /// Polls the future with `poll`. Returns its result, or its panic. A panic of its destructor counts as its
    /// own.
    ///
    /// # Panics
    /// If the slot is empty.
    pub(crate) fn poll(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        poll: PollCaught<F>,
    ) -> Poll<AttemptEnd<F::Output>> {
        let mut future = self.project().future;
        let Some(running) = future.as_mut().as_pin_mut() else { panic!("polled after completion") };
        let Poll::Ready(AttemptEnd { result, attempt }) = poll(running, cx) else { return Poll::Pending };
        let dropped = Panic::catch(|| future.set(None));
        let result = match (result, dropped) {
            (Ok(output), Ok(())) => Ok(output),
            (Err(panic), _) | (Ok(_), Err(panic)) => Err(panic),
        };
        Poll::Ready(AttemptEnd { result, attempt })
    }
}
