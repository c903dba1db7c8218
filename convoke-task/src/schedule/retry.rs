//! `retry(schedule, f)`: again after a while, until it succeeds.

use core::future::Future;
use core::time::Duration;

use convoke_core::raw::Frame;

use super::pause;
use convoke_exec::time::timers_of;

/// Calls an `async` function until it returns `Ok`, and waits in between as the schedule says: a
/// [`Backoff`](super::Backoff), or any other sequence of durations.
///
/// It gives up, with the last error, when the schedule has ended; and also when the deadline around it will have passed before
/// the wait is over, for then there is nothing to hope for.
///
/// - *Completes with* the first `Ok`, or the last `Err`. Stopped, if it was asked to while it waits or `f` runs.
/// - *If dropped*, the attempt is dropped.
/// - *Runs on* the task, by the clock of its executor.
/// - *Panics* as `f` does, and outside a task.
///
/// ```
/// use std::cell::Cell;
/// use std::time::Duration;
/// use convoke::prelude::*;
/// use convoke::retry::{Backoff, retry};
///
/// let outcome = block_on(async {
///     let schedule = Backoff::exponential(Duration::from_millis(1)).jitter(0.5).up_to(5);
///     let mut attempts = 0;
///     retry(schedule, || {
///         attempts += 1;
///         async move { if attempts < 3 { Err("not yet") } else { Ok(attempts) } }
///     })
///     .await
/// });
/// assert_eq!(outcome, Outcome::Value(Ok(3)));
/// ```
pub async fn retry<I, F, R, T, E>(schedule: I, f: F) -> Result<T, E>
where
    I: IntoIterator<Item = Duration>,
    F: FnMut() -> R,
    R: Future<Output = Result<T, E>>,
{
    retry_if(schedule, |_| true, f).await
}

/// As [`retry()`], but gives up at once after an error of which `again` says that it will stay.
///
/// - *Completes with* the first `Ok`, or the last `Err`. Stopped, if it was asked to while it waits or `f` runs.
/// - *If dropped*, the attempt is dropped.
/// - *Runs on* the task, by the clock of its executor.
/// - *Panics* as `f` and `again` do, and outside a task.
///
/// ```
/// use std::io::{Error, ErrorKind};
/// use std::time::Duration;
/// use convoke::prelude::*;
/// use convoke::retry::{Backoff, retry_if};
///
/// let outcome = block_on(async {
///     let again = |error: &Error| error.kind() == ErrorKind::ConnectionRefused;
///     retry_if(Backoff::constant(Duration::from_secs(3600)), again, async || {
///         Err::<(), _>(Error::from(ErrorKind::PermissionDenied))
///     })
///     .await
/// });
/// assert_eq!(outcome.unwrap().unwrap_err().kind(), ErrorKind::PermissionDenied);
/// ```
pub async fn retry_if<I, F, R, T, E>(schedule: I, mut again: impl FnMut(&E) -> bool, mut f: F) -> Result<T, E>
where
    I: IntoIterator<Item = Duration>,
    F: FnMut() -> R,
    R: Future<Output = Result<T, E>>,
{
    let mut waits = schedule.into_iter();
    loop {
        let error = match f().await {
            Ok(value) => return Ok(value),
            Err(error) => error,
        };
        if !again(&error) {
            return Err(error);
        }
        match waits.next() {
            Some(wait) if !is_in_vain(wait) => pause(wait).await,
            _ => return Err(error),
        }
    }
}

/// Whether the deadline will have passed after so long.
fn is_in_vain(wait: Duration) -> bool {
    Frame::current(|frame| {
        let Some(deadline) = frame.and_then(Frame::deadline) else { return false };
        let now = frame.map(|frame| timers_of(frame.operation_owner().env()).now());
        now.and_then(|now| now.checked_add(wait)).is_none_or(|end| end >= deadline)
    })
}
