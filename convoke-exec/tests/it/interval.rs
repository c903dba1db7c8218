//! Tests of intervals with a manual clock: no drift, missed ticks, a stop, a dropped tick.
use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex};
use std::task::Poll;
use std::time::{Duration, Instant};

use convoke::env::Env;
use convoke::prelude::*;
use convoke::task::task;
use convoke::testing::{Clockwork, Connected};
use convoke::time::{Interval, MissedTicks, interval, interval_at};
use futures_core::Stream;

const SECOND: Duration = Duration::from_secs(1);

type Times = Arc<Mutex<Vec<(Duration, Duration)>>>;

/// Records when each tick was due and when it was taken, counted from the start.
async fn note(mut ticks: Interval, work: &[u32], clock: Clockwork, times: Times) {
    let begin = clock.now();
    for tenths in work {
        let due = ticks.tick().await;
        times.lock().unwrap().push((due - begin, clock.now() - begin));
        sleep(*tenths * SECOND / 10).await;
    }
}

/// Returns when the ticks of an interval of one second were due and taken, in tenths of a second. `work` is
/// the time that the work after each tick takes, in tenths.
fn ticks(missed: MissedTicks, work: &'static [u32]) -> Vec<(u128, u128)> {
    let (clock, times) = (Clockwork::new(), Times::default());
    let program = note(interval(SECOND).missed(missed), work, clock.clone(), times.clone());
    let running = Connected::with_env(task(program), Env::from(clock.clone())).start();
    clock.advance(100 * SECOND);
    assert_eq!(running.outcome(), Outcome::Value(()));
    let times = times.lock().unwrap();
    times.iter().map(|(due, taken)| (due.as_millis() / 100, taken.as_millis() / 100)).collect()
}

#[test]
fn the_first_tick_comes_at_once_and_work_between_ticks_delays_none() {
    for missed in [MissedTicks::Burst, MissedTicks::Delay, MissedTicks::Skip] {
        assert_eq!(ticks(missed, &[3, 9, 0, 5, 0]), [(0, 0), (10, 10), (20, 20), (30, 30), (40, 40)]);
    }
}

#[test]
fn with_burst_missed_ticks_come_at_once_and_none_is_lost() {
    let expected = [(0, 0), (10, 35), (20, 35), (30, 35), (40, 40), (50, 50)];
    assert_eq!(ticks(MissedTicks::Burst, &[35, 0, 0, 0, 0, 0]), expected);
}

#[test]
fn with_delay_missed_ticks_move_the_schedule() {
    assert_eq!(ticks(MissedTicks::Delay, &[35, 0, 0, 0]), [(0, 0), (10, 35), (45, 45), (55, 55)]);
}

#[test]
fn with_skip_missed_ticks_are_dropped_and_the_schedule_stays() {
    assert_eq!(ticks(MissedTicks::Skip, &[35, 0, 0, 0]), [(0, 0), (10, 35), (40, 40), (50, 50)]);
    // A tick that is due at this very time is not missed.
    assert_eq!(ticks(MissedTicks::Skip, &[20, 0, 0, 0]), [(0, 0), (10, 20), (30, 30), (40, 40)]);
}

/// Polls once, and returns the result.
async fn once<T>(mut future: Pin<&mut impl Future<Output = T>>) -> Poll<T> {
    poll_fn(|cx| Poll::Ready(future.as_mut().poll(cx))).await
}

#[test]
fn a_dropped_tick_is_not_lost_and_leaves_no_timer() {
    let clock = Clockwork::new();
    let first = clock.now() + SECOND;
    let program = async move {
        let mut ticks = interval_at(first, SECOND);
        assert_eq!(once(pin!(ticks.tick())).await, Poll::Pending);
        let due = ticks.tick().await;
        assert_eq!(once(pin!(ticks.tick())).await, Poll::Pending);
        due
    };
    let running = Connected::with_env(task(program), Env::from(clock.clone())).start();
    clock.advance(SECOND);
    assert_eq!(running.outcome(), Outcome::Value(first));
    assert_eq!(clock.advance(10 * SECOND), 0, "a timer was left behind");
}

#[test]
fn a_stop_ends_the_wait_for_a_tick_and_for_the_stream() {
    async fn by_tick() {
        let mut ticks = interval(SECOND);
        loop {
            ticks.tick().await;
        }
    }
    async fn by_stream() {
        let mut ticks = pin!(interval(SECOND));
        while next(ticks.as_mut()).await.is_some() {}
    }
    let clock = Clockwork::new();
    for program in [Box::pin(by_tick()) as Pin<Box<dyn Future<Output = ()> + Send>>, Box::pin(by_stream())] {
        let bounded = async move { timeout(5 * SECOND / 2, program).await.is_err() };
        let running = Connected::with_env(task(bounded), Env::from(clock.clone())).start();
        clock.advance(3 * SECOND);
        assert_eq!(running.outcome(), Outcome::Value(true));
        assert_eq!(clock.advance(10 * SECOND), 0, "a timer was left behind");
    }
}

async fn next(mut ticks: Pin<&mut Interval>) -> Option<Instant> {
    poll_fn(|cx| ticks.as_mut().poll_next(cx)).await
}

#[test]
fn the_stream_has_the_same_ticks() {
    let clock = Clockwork::new();
    let program = async {
        let mut ticks = pin!(interval(SECOND));
        let first = next(ticks.as_mut()).await.unwrap();
        sleep(SECOND / 2).await;
        let second = next(ticks.as_mut()).await.unwrap();
        (second - first, next(ticks).await.unwrap() - first)
    };
    let running = Connected::with_env(task(program), Env::from(clock.clone())).start();
    clock.advance(3 * SECOND);
    assert_eq!(running.outcome(), Outcome::Value((SECOND, 2 * SECOND)));
}

#[test]
fn a_reset_restarts_the_schedule() {
    let clock = Clockwork::new();
    let begin = clock.now();
    let program = async move {
        let mut ticks = interval(4 * SECOND);
        ticks.tick().await;
        sleep(SECOND).await;
        ticks.reset();
        let mut due = vec![ticks.tick().await, ticks.tick().await];
        ticks.reset_after(SECOND);
        due.extend([ticks.tick().await, ticks.tick().await]);
        ticks.reset_at(begin + 20 * SECOND);
        due.push(ticks.tick().await);
        ticks.reset_immediately();
        due.extend([ticks.tick().await, ticks.tick().await]);
        due.into_iter().map(|due| (due - begin).as_secs()).collect::<Vec<_>>()
    };
    let running = Connected::with_env(task(program), Env::from(clock.clone())).start();
    clock.advance(100 * SECOND);
    assert_eq!(running.outcome(), Outcome::Value(vec![5, 9, 10, 14, 20, 20, 24]));
}

#[test]
fn a_reset_moves_the_timer_of_a_stream_that_waits() {
    let clock = Clockwork::new();
    let begin = clock.now();
    let program = async move {
        let mut ticks = interval_at(begin + 50 * SECOND, 4 * SECOND);
        let mut polls = 0;
        // The second poll comes when the timer wakes the task: nothing else does.
        let due = poll_fn(|cx| {
            polls += 1;
            let polled = Pin::new(&mut ticks).poll_next(cx);
            if polls == 1 {
                ticks.reset();
            }
            polled
        });
        (due.await.unwrap() - begin, polls)
    };
    let running = Connected::with_env(task(program), Env::from(clock.clone())).start();
    clock.advance(100 * SECOND);
    assert_eq!(running.outcome(), Outcome::Value((4 * SECOND, 2)));
}

#[test]
#[should_panic(expected = "the period of an interval must not be zero")]
fn a_period_of_zero_is_refused() {
    let _ = interval(Duration::ZERO);
}
