//! `repeat(schedule, f)`: again after a while, until it is enough.

use core::future::Future;
use core::time::Duration;

use super::pause;
use crate::concurrent::EachOutput;

/// Calls an `async` function, waits as the schedule says, and calls it again: a [`Backoff`](super::Backoff), or any other
/// sequence of durations, after the last of which it is called once more. It returns `()`; or a `Result<(), E>`, whose first
/// error ends it; or a `ControlFlow<B>`, whose first `Break` does.
///
/// - *Completes with* what ended it, or `()`, `Ok(())`, `Continue(())` when the schedule has ended. Stopped, if it was asked to
///   while it waits or `f` runs.
/// - *If dropped*, the call is dropped.
/// - *Runs on* the task, by the clock of its executor.
/// - *Panics* as `f` does, and outside a task.
///
/// ```
/// use std::ops::ControlFlow;
/// use std::time::Duration;
/// use convoke::prelude::*;
/// use convoke::retry::{Backoff, repeat};
///
/// let outcome = block_on(async {
///     let mut looks = 0;
///     repeat(Backoff::constant(Duration::from_millis(1)), || {
///         looks += 1;
///         async move { if looks < 3 { ControlFlow::Continue(()) } else { ControlFlow::Break(looks) } }
///     })
///     .await
/// });
/// assert_eq!(outcome, Outcome::Value(ControlFlow::Break(3)));
/// ```
pub async fn repeat<I, F, R>(schedule: I, mut f: F) -> R::Output
where
    I: IntoIterator<Item = Duration>,
    F: FnMut() -> R,
    R: Future<Output: EachOutput>,
{
    let mut waits = schedule.into_iter();
    loop {
        let output = f().await;
        if output.is_failure() {
            return output;
        }
        match waits.next() {
            Some(wait) => pause(wait).await,
            None => return R::Output::well(),
        }
    }
}
