//! `stoppable(future)`: a foreign future that gives way to a stop.

use core::fmt;
use core::future::{Future, IntoFuture};
use core::panic::Location;
use core::pin::Pin;
use core::task::{Context, Poll};

use convoke_core::raw::{Frame, StopWatch, outside_a_task};
use pin_project_lite::pin_project;

/// Makes a future that knows nothing of stops, of another crate for example, give way to one: when a stop is asked for while
/// it waits, it is dropped, and the function that awaits ends by the stopped door.
///
/// Futures of Convoke hear of a stop themselves and end in order; they need no such thing. A foreign future that is awaited
/// without it is waited for: what it loses when it is dropped only its author knows.
///
/// - *Completes with* what the future returns; or stopped.
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
    Stoppable { future: Some(future.into_future()), place: Location::caller(), watch: StopWatch::new() }
}

pin_project! {
    /// See [`stoppable()`].
    #[must_use = "futures do nothing until they are awaited"]
    pub struct Stoppable<F> {
        #[pin]
        future: Option<F>,
        place: &'static Location<'static>,
        watch: StopWatch,
    }
}

impl<F: Future> Future for Stoppable<F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let mut this = self.project();
        Frame::current(|frame| {
            let Some(frame) = frame else { outside_a_task("`stoppable`") };
            // Polled first: what is there already is not lost to a stop that comes at the same time.
            if let Some(future) = this.future.as_mut().as_pin_mut()
                && let Poll::Ready(value) = future.poll(cx)
            {
                return Poll::Ready(value);
            }
            if frame.honour_stop() {
                this.future.set(None);
            } else {
                frame.waits_at(this.place);
                this.watch.watch(frame, cx);
            }
            Poll::Pending
        })
    }
}

impl<F> fmt::Debug for Stoppable<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stoppable").field("at", &self.place).finish_non_exhaustive()
    }
}
