//! `retry(schedule, f)`: calls a function again after a pause, until it succeeds.

use core::future::Future;
use core::time::Duration;

use convoke_core::raw::Frame;

use super::pause;
use convoke_exec::time::timers_of;

/// Calls an `async` function until it returns `Ok`, with pauses in between. The schedule is a
/// [`Backoff`](super::Backoff), or any other sequence of durations.
///
/// Use this if a call may succeed when it is made again. Use [`repeat`](super::repeat()) for one that is made
/// again after it has succeeded.
///
/// It gives up when the schedule has ended, and also when the deadline of its task would pass before the end
/// of the next pause.
///
/// - *Completes with* the first `Ok`, or the last `Err`. Stopped, if the task is asked to stop during a
///   pause, or `f` stops.
/// - *If dropped*, the running attempt is dropped.
/// - *Runs on* the task, by the clock of its executor.
/// - *Panics* with the panic of `f`; and outside a task.
///
/// ```
/// use std::cell::Cell;
/// use std::time::Duration;
/// use convoke::prelude::*;
/// use convoke::retry::{Backoff, retry};
///
/// let outcome = block_on(async {
///     let backoff = Backoff::exponential(Duration::from_millis(1));
///     let schedule = backoff.jitter(0.5).up_to(5);
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

/// Calls an `async` function until it returns `Ok`, or an error for which `again` returns false. Otherwise
/// like [`retry()`].
///
/// - *Completes with* the first `Ok`, or the last `Err`. Stopped, if the task is asked to stop during a
///   pause, or `f` stops.
/// - *If dropped*, the running attempt is dropped.
/// - *Runs on* the task, by the clock of its executor.
/// - *Panics* with the panic of `f` or `again`; and outside a task.
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

/// Returns true if the deadline of the task passes before the end of this pause.
fn is_in_vain(wait: Duration) -> bool {
    Frame::current(|frame| {
        let Some(deadline) = frame.and_then(Frame::deadline) else { return false };
        let now = frame.map(|frame| timers_of(frame.operation_owner().env()).now());
        now.and_then(|now| now.checked_add(wait)).is_none_or(|end| end >= deadline)
    })
}
