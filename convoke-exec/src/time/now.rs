//! `now()`: what the clock shows that the running task's timers go by. Under virtual time that is not the machine's.

use std::time::Instant;

use convoke_core::raw::Frame;

use super::timers_of;

/// What the clock of the running task shows: that of its executor's timers. Programs that ask it, and not the machine, can be run
/// with virtual time. Outside all tasks it is the machine's.
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
        frame.map_or_else(Instant::now, |frame| timers_of(frame.operation_owner().env()).now())
    })
}
