//! Waiting for a time does not allocate: sleeps, timeouts and ticks of an interval, repeated in one task.
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::Poll;
use std::time::{Duration, Instant};

use convoke::executor::{BlockOn, RunLoop};
use convoke::prelude::*;
use convoke::time::interval;
use convoke::time::sleep_until;
use convoke_testing::workshop::counting::allocations;

const MICROSECOND: Duration = Duration::from_micros(1);
const HOUR: Duration = Duration::from_secs(3600);
/// The rounds in which nothing more is allocated than in five.
const MANY: usize = if cfg!(miri) { 30 } else { 500 };

/// Returns how many more allocations [`MANY`] rounds make than five.
fn of_many_rounds(round: impl AsyncFn() + Copy) -> usize {
    let made_by = |rounds: usize| {
        allocations(|| {
            let outcome = RunLoop::new().block_on(async {
                for _ in 0..rounds {
                    round().await;
                }
            });
            assert_eq!(outcome, Outcome::Value(()));
        })
    };
    // Pays for what is allocated once for each thread.
    made_by(1);
    let few = made_by(5);
    made_by(MANY) - few
}

/// Polls a future once, and drops it.
async fn begin(future: impl Future) {
    let mut future = pin!(future);
    poll_fn(|cx| {
        assert!(future.as_mut().poll(cx).is_pending());
        Poll::Ready(())
    })
    .await;
}

#[test]
fn a_sleep_allocates_nothing() {
    assert_eq!(of_many_rounds(async || sleep(20 * MICROSECOND).await), 0);
    assert_eq!(of_many_rounds(async || sleep_until(Instant::now() + 20 * MICROSECOND).await), 0);
}

#[test]
fn a_dropped_sleep_allocates_nothing() {
    assert_eq!(of_many_rounds(async || begin(sleep(HOUR).into_future()).await), 0);
}

#[test]
fn a_timeout_that_is_not_needed_allocates_nothing() {
    let in_time = async || assert_eq!(timeout(HOUR, sleep(20 * MICROSECOND)).await, Ok(()));
    assert_eq!(of_many_rounds(in_time), 0);
}

#[test]
fn a_timeout_that_expires_allocates_nothing() {
    let late = async || assert!(timeout(20 * MICROSECOND, sleep(HOUR)).await.is_err());
    assert_eq!(of_many_rounds(late), 0);
}

#[test]
fn the_ticks_of_an_interval_allocate_nothing() {
    let ticks = async || {
        let mut ticks = interval(20 * MICROSECOND);
        ticks.tick().await;
        ticks.tick().await;
    };
    assert_eq!(of_many_rounds(ticks), 0);
}

#[test]
fn a_delay_queue_in_use_allocates_nothing() {
    let rounds = |rounds: usize| {
        allocations(|| {
            let outcome = RunLoop::new().block_on(async {
                let mut queue = convoke::time::DelayQueue::new();
                for _ in 0..rounds {
                    let late = queue.insert(1, HOUR);
                    queue.insert(2, 20 * MICROSECOND);
                    assert_eq!(queue.next().await.map(|expired| expired.into_inner()), Some(2));
                    queue.reset(late, Duration::ZERO);
                    assert!(queue.next().await.is_some());
                }
            });
            assert_eq!(outcome, Outcome::Value(()));
        })
    };
    rounds(1);
    let few = rounds(5);
    assert_eq!(rounds(MANY), few);
}

#[test]
fn a_stream_of_ticks_and_a_moved_sleep_allocate_nothing_more() {
    let rounds = |rounds: usize| {
        allocations(|| {
            let outcome = RunLoop::new().block_on(async {
                let mut ticks = interval(20 * MICROSECOND);
                let mut sleeping = pin!(sleep(HOUR).into_future());
                for _ in 0..rounds {
                    poll_fn(|cx| futures_core::Stream::poll_next(std::pin::Pin::new(&mut ticks), cx)).await;
                    sleeping.as_mut().reset_after(20 * MICROSECOND);
                    sleeping.as_mut().await;
                }
            });
            assert_eq!(outcome, Outcome::Value(()));
        })
    };
    rounds(1);
    let few = rounds(5);
    assert_eq!(rounds(MANY), few);
}
