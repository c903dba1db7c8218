//! Times that a run loop passes to its sleeper: exact ones if the clock jumps to them, otherwise times that several
//! timers share.
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use convoke::executor::{BlockOn, RunLoop};
use convoke::prelude::*;
use convoke::raw::Sleeper;
use convoke::time::{now, sleep_until};

const MILLISECOND: Duration = Duration::from_millis(1);
const MICROSECOND: Duration = Duration::from_micros(1);

/// A clock that shows the time at which the last sleep ended, and records these times.
struct Clock {
    jumps: bool,
    start: Instant,
    slept_until: Mutex<Vec<Duration>>,
}

impl Clock {
    fn new(jumps: bool) -> Arc<Self> {
        Arc::new(Self { jumps, start: Instant::now(), slept_until: Mutex::new(Vec::new()) })
    }

    fn slept_until(&self) -> Vec<Duration> {
        self.slept_until.lock().unwrap().clone()
    }
}

impl Sleeper for Clock {
    fn now(&self) -> Instant {
        self.start + self.slept_until().last().copied().unwrap_or_default()
    }

    fn sleep(&self, until: Option<Instant>) {
        let until = until.expect("without a time nothing could wake the loop");
        self.slept_until.lock().unwrap().push(until - self.start);
    }

    fn check(&self) {}

    fn wake(&self) {}

    fn jumps(&self) -> bool {
        self.jumps
    }
}

/// Runs a task for each of these times that sleeps until then, and returns when they woke.
fn sleeps(clock: &Arc<Clock>, times: &[Duration]) -> Vec<Duration> {
    let (start, woken) = (clock.start, Arc::new(Mutex::new(Vec::new())));
    let outcome = RunLoop::over(clock.clone(), None).block_on(async {
        scope(async |s| {
            for &time in times {
                let woken = woken.clone();
                s.child().local().spawn(async move {
                    sleep_until(start + time).await;
                    woken.lock().unwrap().push(now() - start);
                });
            }
        })
        .await;
    });
    assert_eq!(outcome, Outcome::Value(()));
    let woken = woken.lock().unwrap();
    woken.clone()
}

#[test]
fn a_clock_that_jumps_is_told_the_exact_time_of_each_timer() {
    let times =
        [10 * MILLISECOND, 10 * MILLISECOND + 100 * MICROSECOND, 10 * MILLISECOND + 200 * MICROSECOND];
    let clock = Clock::new(true);
    assert_eq!(sleeps(&clock, &times), times);
    assert_eq!(clock.slept_until(), times);
}

#[test]
fn timers_that_are_close_together_share_a_wake_up_if_the_clock_does_not_jump() {
    let times =
        [10 * MILLISECOND, 10 * MILLISECOND + 100 * MICROSECOND, 10 * MILLISECOND + 200 * MICROSECOND];
    let clock = Clock::new(false);
    let woken = sleeps(&clock, &times);
    assert!(woken.iter().zip(times).all(|(woken, time)| *woken >= time), "{woken:?}");
    assert_eq!(woken[1], woken[2]);
    assert!(woken[2] < times[0] + MILLISECOND, "{woken:?}");
    assert_eq!(clock.slept_until(), [woken[0], woken[1]]);
}

#[test]
fn a_sleep_counts_from_the_loops_next_check_and_is_exact_with_a_clock_that_jumps() {
    let clock = Clock::new(true);
    let start = clock.start;
    let outcome = RunLoop::over(clock.clone(), None).block_on(async move {
        let mut woken = Vec::new();
        for _ in 0..3 {
            sleep(10 * MILLISECOND).await;
            woken.push(now() - start);
        }
        woken
    });
    assert_eq!(outcome.unwrap(), [10 * MILLISECOND, 20 * MILLISECOND, 30 * MILLISECOND]);
    assert_eq!(clock.slept_until(), [10 * MILLISECOND, 20 * MILLISECOND, 30 * MILLISECOND]);
}
