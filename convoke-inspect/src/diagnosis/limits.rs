//! For how long what may be before it is reported.

use std::time::Duration;

/// See [`Diagnosis`](super::Diagnosis), where each is set.
#[derive(Clone, Debug)]
pub(super) struct Limits {
    pub(super) stall: Duration,
    pub(super) deadlock: Duration,
    pub(super) quiet: Option<Duration>,
    pub(super) every_lock: bool,
}

impl Limits {
    /// Of a program in production.
    pub(super) const fn new() -> Self {
        Self {
            stall: Duration::from_millis(100),
            deadlock: Duration::from_secs(10),
            quiet: None,
            every_lock: false,
        }
    }

    /// Between two looks: a stall is seen when it is at most half as long again as it may be.
    pub(super) fn pause(&self) -> Duration {
        (self.stall / 4).clamp(Duration::from_millis(1), Duration::from_secs(1))
    }
}
