//! `now()`: the clock of the running task. With virtual time it differs from the clock of the machine.

use std::time::Instant;

use convoke_core::raw::Frame;
use convoke_core::{Executor, ExecutorRef};

/// Reads the clock of the running task, which is that of its executor's timers. Programs that use it instead
/// of `Instant::now` can run with virtual time. Outside a task it reads the clock of the machine.
///
/// ```
/// use std::time::Duration;
/// use convoke::prelude::*;
/// use convoke::time::now;
///
/// let waited = block_on(async {
///     let start = now();
///     sleep(Duration::from_millis(2)).await;
///     now() - start
/// });
/// assert!(waited.unwrap() >= Duration::from_millis(2));
/// ```
#[doc(alias = "Instant")]
pub fn now() -> Instant {
    Frame::current(|frame| {
        frame.map_or_else(Instant::now, |frame| time_on(frame.operation_owner().env().executor()))
    })
}

/// Reads the clock of this executor. An executor without timers has the clock of the system.
fn time_on(executor: &ExecutorRef) -> Instant {
    executor.timers().map_or_else(Instant::now, |timers| timers.now())
}
