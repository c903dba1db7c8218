//! `stoppable(future)`: makes a foreign future stop.

use core::cell::Cell;
use core::fmt;
use core::future::{Future, IntoFuture};
use core::panic::Location;
use core::pin::Pin;
use core::task::{Context, Poll};

use convoke_core::raw::{Frame, Polled, StopWatch, budget, outside_a_task};
use pin_project_lite::pin_project;

/// Makes a future of another crate, which knows nothing of stops, give way to one: if a stop is requested
/// while it waits, it is dropped, and the function that awaits it ends as stopped. Clean-up of Convoke that has
/// begun inside is awaited first.
///
/// Use this if the future is of another crate, and may be dropped where it waits. Use
/// [`shield`](crate::shield()) if it must not be.
///
/// Only needed where the policy [`ForeignFutures`](convoke_core::ForeignFutures) is to let such futures run to
/// their end. By default they give way without it. Futures of Convoke see a stop themselves and end in order.
///
/// - *Completes with* what the future returns, or stopped.
/// - *If dropped*, the future is dropped.
/// - *Runs on* the task's executor.
/// - *Panics* outside a task.
///
/// ```
/// use convoke::env::Changes;
/// use convoke::executor::block_on_with;
/// use convoke::prelude::*;
/// use convoke::task::stoppable;
///
/// let source = StopSource::new();
/// source.request_stop(StopReason::Shutdown);
/// let outcome = block_on_with(
///     Changes::new().stop_token(source.token()),
///     async { stoppable(std::future::pending::<()>()).await },
/// );
/// assert_eq!(outcome, Outcome::Stopped);
/// ```
#[track_caller]
pub fn stoppable<F: IntoFuture>(future: F) -> Stoppable<F::IntoFuture> {
    Stoppable {
        future: Some(future.into_future()),
        stopped: Cell::new(false),
        begun: false,
        location: Location::caller(),
        watch: StopWatch::new(),
    }
}

pin_project! {
    /// The future of [`stoppable()`].
    #[must_use = "futures do nothing until they are awaited"]
    pub struct Stoppable<F> {
        #[pin]
        future: Option<F>,
        stopped: Cell<bool>,
        begun: bool,
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
            if let Some(future) = this.future.as_mut().as_pin_mut() {
                if !*this.begun && !budget::may_proceed(cx) {
                    return Poll::Pending;
                }
                *this.begun = true;
                let (mark, inside) = (budget::mark(), frame.same(this.stopped));
                match inside.poll(future, cx) {
                    Polled::Ready(value) => {
                        mark.spend_once();
                        return Poll::Ready(value);
                    }
                    // A clean-up that has begun inside is awaited.
                    Polled::Pending if !frame.is_asked_to_stop() || !inside.may_be_dropped() => {
                        frame.waits_at(this.location);
                        this.watch.watch(frame, cx);
                        return Poll::Pending;
                    }
                    Polled::Pending | Polled::Stopped => this.future.set(None),
                }
            }
            frame.set_stopped();
            Poll::Pending
        })
    }
}

impl<F> fmt::Debug for Stoppable<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stoppable").field("at", &self.location).finish_non_exhaustive()
    }
}
