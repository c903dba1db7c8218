//! The clock of a host, which may be ahead of or behind the simulated time, run too fast or too slowly, and
//! jump. It shows two times: a monotonic one, which never goes back, and the time of day.

use core::time::Duration;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// The time of day at the start of each simulation, in seconds since 1970: the first of January 2000.
const START_OF_DAY: Duration = Duration::from_secs(946_684_800);

/// The difference between a host's clock and the simulated time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Clock {
    /// Its lead in nanoseconds; negative if it is behind.
    pub(crate) ahead: i64,
    /// Its excess speed in millionths; negative if it runs too slowly.
    pub(crate) too_fast: i64,
    /// The lead of its time of day over its monotonic time, in nanoseconds; negative if it is behind.
    pub(crate) day_ahead: i64,
}

/// The unit of `too_fast` and of the rate.
const MILLION: i128 = 1_000_000;

impl Clock {
    /// Returns the time it shows when `passed` of the simulated time has passed.
    pub(crate) fn shows(self, start: Instant, passed: Duration) -> Instant {
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
    pub(crate) fn passed_when(self, start: Instant, shows: Instant) -> Duration {
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
    pub(crate) fn time_of_day(self, passed: Duration) -> SystemTime {
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

#[cfg(test)]
mod tests {
    use super::*;

    const CLOCKS: [Clock; 4] = [
        Clock { ahead: 0, too_fast: 0, day_ahead: 0 },
        Clock { ahead: 5_000_000_007, too_fast: 0, day_ahead: 0 },
        Clock { ahead: 0, too_fast: 333_333, day_ahead: 0 },
        Clock { ahead: -17, too_fast: -142_857, day_ahead: 0 },
    ];

    #[test]
    fn a_time_is_reached_when_it_is_shown_and_not_before() {
        let start = Instant::now() + Duration::from_secs(3600);
        for clock in CLOCKS {
            for nanoseconds in (0..if cfg!(miri) { 20 } else { 200_u64 }).map(|step| step * 77_777_777) {
                let time = start + Duration::from_nanos(nanoseconds);
                let passed = clock.passed_when(start, time);
                assert!(clock.shows(start, passed) >= time, "{clock:?} {nanoseconds}");
                if let Some(before) = passed.checked_sub(Duration::from_nanos(1)) {
                    assert!(clock.shows(start, before) < time, "{clock:?} {nanoseconds}");
                }
            }
        }
    }

    #[test]
    fn a_time_of_day_may_lie_before_1970() {
        let century = 100 * 365 * 86_400 * 1_000_000_000;
        let clock = Clock { ahead: 0, too_fast: 0, day_ahead: -century };
        let expected = UNIX_EPOCH + START_OF_DAY - Duration::from_nanos(century as u64);
        assert_eq!(clock.time_of_day(Duration::ZERO), expected);
        assert!(expected < UNIX_EPOCH);
    }

    #[test]
    fn a_fast_clock_shows_more_time() {
        let start = Instant::now();
        let clock = Clock { ahead: 0, too_fast: 500_000, day_ahead: 0 };
        assert_eq!(clock.shows(start, Duration::from_secs(2)), start + Duration::from_secs(3));
    }
}
