//! `timeout(duration, future)` and `deadline(instant, future)`: time that is up is an error.

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

/// Runs a future for this long at most, counted from when it is first polled. Then it is asked to stop, with
/// [`StopReason::Deadline`](convoke_core::StopReason::Deadline), and awaited, with its clean-up.
///
/// Inside, [`current::deadline`](crate::current::deadline) and the stop tokens of what is awaited show the deadline: the nearest
/// of this one and those around. It is the nearest one that counts: if the deadline of something around passes first, the
/// stop goes on to there.
///
/// - *Completes with* `Ok` of what the future returns, also if that came when the time was up already; or [`Elapsed`], if it has
///   stopped because of that. Stopped, if the future was stopped for another reason, or by itself.
/// - *If dropped*, the future is dropped.
/// - *Runs on* the task, by the clock of its executor.
/// - *Panics* as the future does, and outside a task.
///
/// ```
/// use std::time::Duration;
/// use convoke::prelude::*;
/// use convoke::sender::prelude::*;
///
/// let outcome = block_on(async {
///     let quick = timeout(Duration::from_secs(3600), async { 1 }).await;
///     let slow = timeout(Duration::from_millis(1), never::<u32>()).await;
///     (quick, slow.is_err())
/// });
/// assert_eq!(outcome, Outcome::Value((Ok(1), true)));
/// ```
pub fn timeout<F: IntoFuture>(duration: Duration, future: F) -> Timeout<F::IntoFuture> {
    Timeout { limited: Limited::new(future.into_future(), When::After(duration)) }
}

/// Runs a future until this time at most. All else is as for [`timeout()`].
///
/// - *Completes with* `Ok` of what the future returns, or [`Elapsed`].
/// - *If dropped*, the future is dropped.
/// - *Runs on* the task, by the clock of its executor.
/// - *Panics* as the future does, and outside a task.
///
/// ```
/// use std::time::{Duration, Instant};
/// use convoke::prelude::*;
/// use convoke::time::deadline;
///
/// let at = Instant::now() + Duration::from_millis(2);
/// let outcome = block_on(async move {
///     // Both have the same time, however long the first takes.
///     let first = deadline(at, async { convoke::env::current::deadline() }).await;
///     let second = deadline(at, sleep(Duration::from_secs(3600))).await;
///     (first, second.map_err(|elapsed| elapsed.deadline()))
/// });
/// assert_eq!(outcome, Outcome::Value((Ok(Some(at)), Err(at))));
/// ```
pub fn deadline<F: IntoFuture>(instant: Instant, future: F) -> Timeout<F::IntoFuture> {
    Timeout { limited: Limited::new(future.into_future(), When::At(instant)) }
}

pin_project! {
    /// See [`timeout()`] and [`deadline()`].
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

/// The time was up. As an [`io::Error`] it is of the kind [`TimedOut`](io::ErrorKind::TimedOut), so that `?` does in a function
/// that waits for sockets.
///
/// ```
/// use std::io;
/// use std::time::Duration;
/// use convoke::prelude::*;
/// use convoke::sender::prelude::*;
///
/// async fn answer() -> io::Result<String> {
///     timeout(Duration::from_millis(1), never::<io::Result<String>>()).await?
/// }
///
/// assert_eq!(block_on(answer()).unwrap().unwrap_err().kind(), io::ErrorKind::TimedOut);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Elapsed {
    deadline: Instant,
}

impl Elapsed {
    /// Until when there was time.
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
