//! The clock of a host, which may be ahead of or behind the simulated time, run too fast or too slowly, and
//! jump. It shows two times: a monotonic one, which never goes back, and the time of day.

use core::time::Duration;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// The time of day at the start of each simulation, in seconds since 1970: the first of January 2000.
pub const START_OF_DAY: Duration = Duration::from_secs(946_684_800);

/// The difference between a host's clock and the simulated time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Clock {
    /// Its lead in nanoseconds; negative if it is behind.
    pub ahead: i64,
    /// Its excess speed in millionths; negative if it runs too slowly.
    pub too_fast: i64,
    /// The lead of its time of day over its monotonic time, in nanoseconds; negative if it is behind.
    pub day_ahead: i64,
}

/// The unit of `too_fast` and of the rate.
const MILLION: i128 = 1_000_000;

impl Clock {
    /// Returns the time it shows when `passed` of the simulated time has passed.
    pub fn shows(self, start: Instant, passed: Duration) -> Instant {
        if self.is_exact() {
            return start + passed;
        }
        let shown = self.shown(passed.as_nanos() as i128);
        match Duration::from_nanos(shown.unsigned_abs().try_into().unwrap_or(u64::MAX)) {
            ahead if shown >= 0 => start + ahead,
            // `Instant` may not represent times before the machine's own start.
            behind => start.checked_sub(behind).unwrap_or(start),
        }
    }

    /// Returns the simulated time at which it first shows `shows`.
    pub fn passed_when(self, start: Instant, shows: Instant) -> Duration {
        if self.is_exact() {
            return shows.saturating_duration_since(start);
        }
        let shown = match shows.checked_duration_since(start) {
            Some(after) => after.as_nanos() as i128,
            None => -(start.duration_since(shows).as_nanos() as i128),
        };
        let mut passed = ((shown - i128::from(self.ahead)) * MILLION / self.rate()).max(0);
        // The division rounds down, but a timer must not fire early.
        while self.shown(passed) < shown {
            passed += 1;
        }
        Duration::from_nanos(passed.try_into().unwrap_or(u64::MAX))
    }

    /// Returns the time of day it shows when `passed` of the simulated time has passed.
    pub fn time_of_day(self, passed: Duration) -> SystemTime {
        let shown = self.shown(passed.as_nanos() as i128) + i128::from(self.day_ahead);
        let since_1970 = START_OF_DAY.as_nanos() as i128 + shown;
        let distance = Duration::from_nanos(since_1970.unsigned_abs().try_into().unwrap_or(u64::MAX));
        if since_1970 >= 0 { UNIX_EPOCH + distance } else { UNIX_EPOCH - distance }
    }

    /// Returns true if its monotonic time is the simulated time.
    fn is_exact(self) -> bool {
        self.ahead == 0 && self.too_fast == 0
    }

    fn shown(self, passed: i128) -> i128 {
        i128::from(self.ahead) + passed * self.rate() / MILLION
    }

    fn rate(self) -> i128 {
        MILLION + i128::from(self.too_fast)
    }
}
