//! Runs of a loop that end at a time, or after a number of pieces.
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use convoke::executor::{RunLoop, RunLoopExecutor};
use convoke::prelude::*;
use convoke::raw::Sleeper;
use convoke::testing::runnable;
use convoke_core::Executor;

const SECOND: Duration = Duration::from_secs(1);

/// A clock that jumps to the time that is slept for, and goes on by `step` when it is read.
struct Clock {
    now: Mutex<Instant>,
    step: Duration,
}

impl Clock {
    fn new(step: Duration) -> Arc<Self> {
        Arc::new(Self { now: Mutex::new(Instant::now()), step })
    }
}

impl Sleeper for Clock {
    fn now(&self) -> Instant {
        let mut now = self.now.lock().unwrap();
        *now += self.step;
        *now
    }

    fn sleep(&self, until: Option<Instant>) {
        let mut now = self.now.lock().unwrap();
        *now = (*now).max(until.expect("nothing but a time ends this sleep"));
    }

    fn check(&self) {}

    fn wake(&self) {}

    fn jumps(&self) -> bool {
        true
    }
}

#[test]
fn a_run_for_a_time_ends_then_and_leaves_later_timers_armed() {
    let clock = Clock::new(Duration::ZERO);
    let run_loop = RunLoop::over(clock.clone(), None);
    let start = clock.now();
    let launched = [1, 3]
        .map(|seconds| launch(&run_loop.executor()).start(async move { sleep(seconds * SECOND).await }));
    assert_eq!(run_loop.run_for(2 * SECOND), 3, "both began to sleep, and one went on");
    assert_eq!(clock.now(), start + 2 * SECOND);
    assert_eq!(launched.each_ref().map(|launched| launched.is_finished()), [true, false]);
    assert_eq!(run_loop.next_timer(), Some(start + 3 * SECOND));
    assert_eq!(run_loop.run_until(start + 4 * SECOND), 1);
    assert_eq!(clock.now(), start + 4 * SECOND);
    assert_eq!(run_loop.run_until(start), 0, "that time is past");
    launched.into_iter().for_each(|launched| launched.wait().unwrap());
}

#[test]
fn a_timed_run_of_a_finished_loop_ends_when_its_queue_is_empty() {
    let clock = Clock::new(Duration::ZERO);
    let run_loop = RunLoop::over(clock.clone(), None);
    let start = clock.now();
    run_loop.executor().post(runnable(|_| ()));
    assert!(!run_loop.is_finished());
    run_loop.finish();
    assert!(run_loop.is_finished());
    assert_eq!(run_loop.run_for(SECOND), 2, "the piece, and the wake-up by `finish`");
    assert_eq!(clock.now(), start, "it did not wait");
}

/// Posts itself again whenever it runs.
fn post_for_ever(executor: RunLoopExecutor, runs: Arc<AtomicUsize>) {
    let again = executor.clone();
    executor.post(runnable(move |_| {
        if runs.fetch_add(1, Ordering::Relaxed) < 1000 {
            post_for_ever(again, runs);
        }
    }));
}

#[test]
fn work_that_posts_itself_for_ever_does_not_keep_a_timed_run() {
    // The clock goes on with each piece: it is read before each.
    let run_loop = RunLoop::over(Clock::new(Duration::from_millis(10)), None);
    let runs = Arc::new(AtomicUsize::new(0));
    post_for_ever(run_loop.executor(), runs.clone());
    let ran = run_loop.run_for(SECOND);
    assert_eq!(ran, runs.load(Ordering::Relaxed));
    assert!((50..=100).contains(&ran), "{ran} pieces in a hundred readings of the clock");
}

#[test]
fn a_run_counts_its_pieces() {
    let run_loop = RunLoop::new();
    for _ in 0..3 {
        run_loop.executor().post(runnable(|_| ()));
    }
    run_loop.finish();
    assert_eq!(run_loop.run(), 4, "three pieces, and the wake-up by `finish`");
    assert_eq!(run_loop.run(), 0);
}

#[test]
fn a_turn_is_bounded_and_says_whether_there_is_more() {
    let (run_loop, runs) = (RunLoop::new(), Arc::new(AtomicUsize::new(0)));
    post_for_ever(run_loop.executor(), runs.clone());
    for turn in 1..=3 {
        let end = run_loop.turn(10);
        assert_eq!((end.ran, end.has_more, end.next_timer), (10, true, None));
        assert_eq!(runs.load(Ordering::Relaxed), 10 * turn);
    }
    assert_eq!(run_loop.turn(0).ran, 0);
    assert!(run_loop.turn(0).has_more);
    let end = run_loop.turn(usize::MAX);
    assert_eq!((end.ran, end.has_more), (1001 - 30, false));
    assert_eq!(run_loop.run_ready_at_most(1), 0);
}
