//! `repeat(schedule, f)`: calls a function again after a pause, until it ends the loop.

use core::future::Future;
use core::time::Duration;

use super::pause;
use crate::concurrent::EachOutput;

/// Calls an `async` function, pauses, and calls it again. The schedule is a [`Backoff`](super::Backoff), or
/// any other sequence of durations; after the last one the function is called once more. The function returns
/// `()`; or a `Result<(), E>`, whose first error ends the loop; or a `ControlFlow<B>`, whose first `Break`
/// does.
///
/// Use this if work is done again and again, as long as it succeeds. Use [`retry`](super::retry()) for what is
/// done again because it failed.
///
/// - *Completes with* the error or `Break`; or with `()`, `Ok(())` or `Continue(())` when the schedule has
///   ended. Stopped, if the task is asked to stop during a pause, or `f` stops.
/// - *If dropped*, the running call is dropped.
/// - *Runs on* the task, by the clock of its executor.
/// - *Panics* with the panic of `f`; and outside a task.
///
/// ```
/// use std::ops::ControlFlow;
/// use std::time::Duration;
/// use convoke::prelude::*;
/// use convoke::retry::{Backoff, repeat};
///
/// let outcome = block_on(async {
///     let mut checks = 0;
///     repeat(Backoff::constant(Duration::from_millis(1)), || {
///         checks += 1;
///         async move {
///             if checks < 3 { ControlFlow::Continue(()) } else { ControlFlow::Break(checks) }
///         }
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
