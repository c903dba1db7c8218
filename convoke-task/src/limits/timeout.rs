//! `timeout(duration, future)` and `timeout_at(instant, future)`: an error when the time is up.

use core::fmt;
use core::future::{Future, IntoFuture};
use core::pin::Pin;
use core::task::{Context, Poll};
use std::io;
use std::time::{Duration, Instant};

use pin_project_lite::pin_project;

use super::limited::{Ended, Limited};
use crate::region::pass_on_stop;
use convoke_exec::raw::When;

/// Runs a future for at most `duration`, counted from its first poll. After that it is asked to stop, with
/// [`StopReason::Deadline`](convoke_core::StopReason::Deadline), and awaited, with its clean-up.
///
/// Use this if the time begins now. Use [`timeout_at`] for a deadline that several calls share, and a deadline
/// in the environment (`env::with`) for all that is below.
///
/// The future sees the deadline with [`current::deadline`](crate::current::deadline) and in stop tokens: the
/// earliest of this one and those from outside. If a deadline from outside is earlier, its owner gets the
/// error, and this future stops.
///
/// - *Completes with* `Ok` of the output of the future, also if it returns after the time was up; or with
///   [`Elapsed`], if it stopped because the time was up. Stopped, if it stopped for another reason, or by
///   itself.
/// - *If dropped*, the future is dropped.
/// - *Runs on* the task, by the clock of its executor.
/// - *Panics* with the panic of the future; and outside a task.
///
/// ```
/// use std::time::Duration;
/// use convoke::prelude::*;
///
/// let outcome = block_on(async {
///     let quick = timeout(Duration::from_secs(3600), async { 1 }).await;
///     let slow = timeout(Duration::from_millis(1), sleep(Duration::from_secs(3600))).await;
///     (quick, slow.is_err())
/// });
/// assert_eq!(outcome, Outcome::Value((Ok(1), true)));
/// ```
pub fn timeout<F: IntoFuture>(duration: Duration, future: F) -> Timeout<F::IntoFuture> {
    Timeout { limited: Limited::new(future.into_future(), When::After(duration)) }
}

/// Runs a future until `instant` at most. Otherwise like [`timeout()`].
///
/// Use this if several calls share the deadline. Use [`timeout`] if the time begins now.
///
/// - *Completes with* `Ok` of the output of the future, or with [`Elapsed`]. Stopped, as [`timeout()`] is.
/// - *If dropped*, the future is dropped.
/// - *Runs on* the task, by the clock of its executor.
/// - *Panics* with the panic of the future; and outside a task.
///
/// ```
/// use std::time::{Duration, Instant};
/// use convoke::prelude::*;
/// use convoke::time::timeout_at;
///
/// let at = Instant::now() + Duration::from_millis(2);
/// let outcome = block_on(async move {
///     // Both have the same deadline, however long the first takes.
///     let first = timeout_at(at, async { convoke::env::current::deadline() }).await;
///     let second = timeout_at(at, sleep(Duration::from_secs(3600))).await;
///     (first, second.map_err(|elapsed| elapsed.deadline()))
/// });
/// assert_eq!(outcome, Outcome::Value((Ok(Some(at)), Err(at))));
/// ```
pub fn timeout_at<F: IntoFuture>(instant: Instant, future: F) -> Timeout<F::IntoFuture> {
    Timeout { limited: Limited::new(future.into_future(), When::At(instant)) }
}

pin_project! {
    /// Future of [`timeout()`] and [`timeout_at()`].
    #[must_use = "futures do nothing until they are awaited"]
    pub struct Timeout<F> {
        #[pin]
        limited: Limited<F>,
    }
}

impl<F: Future> Future for Timeout<F> {
    type Output = Result<F::Output, Elapsed>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        match self.project().limited.poll(cx) {
            Poll::Pending => Poll::Pending,
            Poll::Ready(Ended::Value(value)) => Poll::Ready(Ok(value)),
            Poll::Ready(Ended::Elapsed(deadline)) => Poll::Ready(Err(Elapsed { deadline })),
            Poll::Ready(Ended::Stopped) => pass_on_stop(),
        }
    }
}

/// Error of [`timeout()`] and [`timeout_at()`]: the time was up. `?` converts it to an [`io::Error`] of the kind
/// [`TimedOut`](io::ErrorKind::TimedOut).
///
/// ```
/// use std::io;
/// use std::time::Duration;
/// use convoke::prelude::*;
/// use convoke::task::forever;
///
/// async fn answer() -> io::Result<String> {
///     timeout(Duration::from_millis(1), async { forever().await }).await?
/// }
///
/// let error = block_on(answer()).unwrap().unwrap_err();
/// assert_eq!(error.kind(), io::ErrorKind::TimedOut);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Elapsed {
    deadline: Instant,
}

impl Elapsed {
    /// Returns the deadline that has passed.
    pub const fn deadline(self) -> Instant {
        self.deadline
    }
}

impl fmt::Display for Elapsed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the time was up")
    }
}

impl core::error::Error for Elapsed {}

impl From<Elapsed> for io::Error {
    fn from(elapsed: Elapsed) -> Self {
        Self::new(io::ErrorKind::TimedOut, elapsed)
    }
}

impl<F> fmt::Debug for Timeout<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Timeout").finish_non_exhaustive()
    }
}
