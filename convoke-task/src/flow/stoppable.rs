//! `stoppable(future)`: makes a foreign future stop.

use core::fmt;
use core::future::{Future, IntoFuture};
use core::panic::Location;
use core::pin::Pin;
use core::task::{Context, Poll};

use convoke_core::raw::{Frame, StopWatch, outside_a_task};
use pin_project_lite::pin_project;

/// Makes a future of another crate, which knows nothing of stops, give way to one: if a stop is requested
/// while it waits, it is dropped, and the function that awaits it ends as stopped.
///
/// Futures of Convoke see a stop themselves and end in order; they do not need this. A foreign future that is
/// awaited without it runs to its end: only its author knows what it loses when it is dropped.
///
/// - *Completes with* what the future returns, or stopped.
/// - *If dropped*, the future is dropped.
/// - *Runs on* the task's executor.
/// - *Panics* outside a task.
///
/// ```
/// use convoke::sender::prelude::*;
/// use convoke::task::stoppable;
/// use convoke::env::Changes;
///
/// let source = StopSource::new();
/// source.request_stop(StopReason::Shutdown);
/// let outcome = sync_wait_with(
///     Changes::new().stop_token(source.token()),
///     task(async { stoppable(std::future::pending::<()>()).await }),
/// );
/// assert_eq!(outcome, Outcome::Stopped);
/// ```
#[track_caller]
pub fn stoppable<F: IntoFuture>(future: F) -> Stoppable<F::IntoFuture> {
    Stoppable { future: Some(future.into_future()), location: Location::caller(), watch: StopWatch::new() }
}

pin_project! {
    /// The future of [`stoppable()`].
    #[must_use = "futures do nothing until they are awaited"]
    pub struct Stoppable<F> {
        #[pin]
        future: Option<F>,
        location: &'static Location<'static>,
        watch: StopWatch,
    }
}

impl<F: Future> Future for Stoppable<F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let mut this = self.project();
        Frame::current(|frame| {
            let Some(frame) = frame else { outside_a_task("`stoppable`") };
            // Polled first: a result that is ready is not lost to a stop at the same time.
            if let Some(future) = this.future.as_mut().as_pin_mut()
                && let Poll::Ready(value) = future.poll(cx)
            {
                return Poll::Ready(value);
            }
            if frame.honour_stop() {
                this.future.set(None);
            } else {
                frame.waits_at(this.location);
                this.watch.watch(frame, cx);
            }
            Poll::Pending
        })
    }
}

impl<F> fmt::Debug for Stoppable<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stoppable").field("at", &self.location).finish_non_exhaustive()
    }
}
