//! `stop_after(duration, future)`: stops the task when the time is up.

use core::fmt;
use core::future::{Future, IntoFuture};
use core::pin::Pin;
use core::task::{Context, Poll};
use std::time::Duration;

use pin_project_lite::pin_project;

use super::limited::{Ended, Limited};
use crate::region::pass_on_stop;
use convoke_exec::raw::When;

/// Runs a future for at most `duration`, like [`timeout()`](super::timeout()). When the time is up, the
/// future stops, and the task that awaits it stops with it.
///
/// - *Completes with* the output of the future. Stopped, if the future stops, because the time is up or for
///   another reason.
/// - *If dropped*, the future is dropped.
/// - *Runs on* the task, by the clock of its executor.
/// - *Panics* with the panic of the future; and outside a task.
///
/// ```
/// use std::time::Duration;
/// use convoke::prelude::*;
/// use convoke::time::stop_after;
///
/// let outcome = block_on(async {
///     stop_after(Duration::from_millis(1), sleep(Duration::from_secs(3600))).await;
///     unreachable!("not resumed");
/// });
/// assert_eq!(outcome, Outcome::<()>::Stopped);
/// ```
pub fn stop_after<F: IntoFuture>(duration: Duration, future: F) -> StopAfter<F::IntoFuture> {
    StopAfter { limited: Limited::new(future.into_future(), When::After(duration)) }
}

pin_project! {
    /// Future of [`stop_after()`].
    #[must_use = "futures do nothing until they are awaited"]
    pub struct StopAfter<F> {
        #[pin]
        limited: Limited<F>,
    }
}

impl<F: Future> Future for StopAfter<F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        match self.project().limited.poll(cx) {
            Poll::Pending => Poll::Pending,
            Poll::Ready(Ended::Value(value)) => Poll::Ready(value),
            Poll::Ready(Ended::Elapsed(_) | Ended::Stopped) => pass_on_stop(),
        }
    }
}

impl<F> fmt::Debug for StopAfter<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StopAfter").finish_non_exhaustive()
    }
}
