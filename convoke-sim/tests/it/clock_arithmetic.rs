//! Clocks that are ahead, behind, too fast or too slow: the time that they show, to the nanosecond.

use std::time::{Duration, Instant, UNIX_EPOCH};

use convoke_sim::raw::{Clock, START_OF_DAY};

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
