//! The durations after which something is reported.

use std::time::Duration;

/// The limits of a diagnosis, set by the methods of [`Diagnosis`](super::Diagnosis).
#[derive(Clone, Debug)]
pub(super) struct Limits {
    pub(super) stall: Duration,
    pub(super) deadlock: Duration,
    pub(super) quiet: Option<Duration>,
    pub(super) every_lock: bool,
}

impl Limits {
    /// Returns the limits for a program in production.
    pub(super) const fn new() -> Self {
        Self {
            stall: Duration::from_millis(100),
            deadlock: Duration::from_secs(10),
            quiet: None,
            every_lock: false,
        }
    }

    /// Returns the pause between two checks: a stall is seen at the latest when it is half as long again as
    /// the limit.
    pub(super) fn pause(&self) -> Duration {
        (self.stall / 4).clamp(Duration::from_millis(1), Duration::from_secs(1))
    }
}
