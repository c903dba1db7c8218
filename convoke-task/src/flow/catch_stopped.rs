//! `catch_stopped(future)`: turns a stop into a value.

use core::cell::Cell;
use core::fmt;
use core::future::{Future, IntoFuture};
use core::pin::Pin;
use core::task::{Context, Poll};

use convoke_core::StopReason;
use convoke_core::raw::{Frame, Polled, budget, outside_a_task};
use pin_project_lite::pin_project;

/// Runs a future, and returns [`Stopped`] if it ends as stopped, instead of ending the awaiting function too.
///
/// Use this if the task goes on after a part of it was stopped. Use [`using`](crate::using()) or
/// [`ensure`](crate::ensure()) to clean up: a caught stop is easily swallowed.
///
/// The task is still asked to stop afterwards: the next thing that waits is stopped again, and a line on stderr
/// says so. Work that must be done nevertheless belongs into a `shield`, or into clean-up.
///
/// - *Completes with* `Ok` of what the future returns, or [`Stopped`].
/// - *If dropped*, the future is dropped.
/// - *Runs on* the task's executor.
/// - *Panics* outside a task.
///
/// ```
/// use convoke::prelude::*;
/// use convoke::task::stopped;
///
/// let outcome = block_on(async {
///     let caught = catch_stopped(async { stopped().await }).await;
///     assert!(caught.is_err());
///     "went on"
/// });
/// assert_eq!(outcome, Outcome::Value("went on"));
/// ```
pub fn catch_stopped<F: IntoFuture>(future: F) -> CatchStopped<F::IntoFuture> {
    CatchStopped { future: Some(future.into_future()), stopped: Cell::new(false), begun: false }
}

/// The error of work that ended as stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stopped {
    reason: Option<StopReason>,
}

impl Stopped {
    /// Creates one with the reason for which a stop was requested, if it was: work may also stop by itself.
    pub const fn new(reason: Option<StopReason>) -> Self {
        Self { reason }
    }

    /// Returns why a stop was requested. `None` if the work has stopped by itself.
    pub const fn reason(self) -> Option<StopReason> {
        self.reason
    }
}

impl fmt::Display for Stopped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.reason {
            Some(reason) => write!(f, "stopped: {reason}"),
            None => f.write_str("stopped by itself"),
        }
    }
}

impl core::error::Error for Stopped {}

/// An error of the kind [`Other`](std::io::ErrorKind::Other), so that `?` works in functions that do I/O. It
/// is not `Interrupted`: callers repeat calls that fail with that kind.
impl From<Stopped> for std::io::Error {
    fn from(stopped: Stopped) -> Self {
        Self::other(stopped)
    }
}

pin_project! {
    /// The future of [`catch_stopped()`].
    #[must_use = "futures do nothing until they are awaited"]
    pub struct CatchStopped<F> {
        #[pin]
        future: Option<F>,
        stopped: Cell<bool>,
        begun: bool,
    }
}

impl<F: Future> Future for CatchStopped<F> {
    type Output = Result<F::Output, Stopped>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        let (mut future, stopped) = (this.future, &*this.stopped);
        Frame::current(|frame| {
            let Some(outer) = frame else { outside_a_task("`catch_stopped`") };
            let Some(body) = future.as_mut().as_pin_mut() else { panic!("polled after it has ended") };
            if !*this.begun && !budget::may_proceed(cx) {
                return Poll::Pending;
            }
            *this.begun = true;
            let (mark, inside) = (budget::mark(), outer.same(stopped));
            match inside.poll(body, cx) {
                Polled::Ready(value) => {
                    mark.spend_once();
                    Poll::Ready(Ok(value))
                }
                Polled::Pending => Poll::Pending,
                Polled::Stopped => {
                    // A child that was awaited may have stopped for a reason of its own.
                    let reason = inside.take_cause().or_else(|| outer.stop_reason());
                    outer.take_cause();
                    future.set(None);
                    outer.stop_was_caught();
                    mark.spend_once();
                    Poll::Ready(Err(Stopped { reason }))
                }
            }
        })
    }
}

impl<F> fmt::Debug for CatchStopped<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CatchStopped").finish_non_exhaustive()
    }
}
