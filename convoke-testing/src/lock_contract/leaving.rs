//! Waits that end before they succeed, by a stop at any point or by a drop: no permit is lost, and the next
//! waiter gets in.

use core::cell::RefCell;
use core::pin::pin;
use core::task::Poll;
use std::sync::Arc;
use std::time::Duration;

use convoke_core::{StopReason, StopSource};

use super::super::explore_stops::{explore_inner_stops, explore_stops};
use super::super::play::{Play, run};
use super::super::woken::Woken;
use super::{LockHarness, LockUnderTest, assert_free, enter};
use convoke_task::{catch_stopped, checkpoint, scope, timeout};

/// Contends for a lock: each user acquires it, and every other one acquires it again with a time limit.
async fn contend<L: LockUnderTest>(lock: Arc<L>, users: usize, hears_stops: bool) {
    scope(async |s| {
        for number in 0..users {
            let lock = lock.clone();
            s.spawn(async move {
                let held = enter(&*lock, hears_stops).await;
                checkpoint().await;
                drop(held);
                if number % 2 == 0 {
                    let _in_time = timeout(Duration::from_secs(1), enter(&*lock, hears_stops)).await;
                    checkpoint().await;
                }
            });
        }
    })
    .await;
}

pub(super) fn a_stop_loses_no_permit<L: LockUnderTest>(harness: &LockHarness<L>) {
    let (users, hears_stops) = (harness.permits + 2, harness.hears_stops);
    let locks = RefCell::new(Vec::new());
    let program = || {
        let lock = Arc::new(harness.make());
        locks.borrow_mut().push(lock.clone());
        contend(lock, users, hears_stops)
    };
    // `explore_inner_stops` also makes these runs. Left out under Miri, where a run takes seconds.
    if !cfg!(miri) {
        explore_stops(program);
    }
    explore_inner_stops(program);
    for lock in locks.take() {
        assert_free(&*lock, harness.permits);
    }
}

pub(super) fn a_dropped_wait_takes_nothing<L: LockUnderTest>(harness: &LockHarness<L>) {
    let (lock, permits) = (Arc::new(harness.make()), harness.permits);
    run(async move {
        let inside: Vec<_> = core::iter::from_fn(|| lock.try_acquire()).take(permits).collect();
        for _ in 0..3 {
            let mut gone = Box::pin(lock.acquire());
            assert!(
                Woken::new().poll(gone.as_mut()).is_pending(),
                "`acquire` succeeded without a free permit"
            );
        }
        drop(inside);
        assert_free(&*lock, permits);
    });
}

pub(super) fn a_dropped_grant_goes_to_the_next<L: LockUnderTest>(harness: &LockHarness<L>) {
    let (lock, permits) = (Arc::new(harness.make()), harness.permits);
    run(async move {
        let mut inside: Vec<_> = core::iter::from_fn(|| lock.try_acquire()).take(permits).collect();
        let (first_woken, second_woken) = (Woken::new(), Woken::new());
        let mut first = Box::pin(lock.acquire());
        let mut second = Box::pin(lock.acquire());
        assert!(first_woken.poll(first.as_mut()).is_pending(), "`acquire` succeeded without a free permit");
        assert!(second_woken.poll(second.as_mut()).is_pending(), "`acquire` succeeded without a free permit");
        drop(inside.pop());
        assert!(first_woken.count() + second_woken.count() > 0, "a permit is free, but no waiter was woken");
        drop(first);
        assert!(second_woken.count() > 0, "the first waiter was dropped, but the second was not woken");
        let Poll::Ready(held) = second_woken.poll(second.as_mut()) else {
            panic!("a permit is free and there is no other waiter")
        };
        drop((held, second, inside));
        assert_free(&*lock, permits);
    });
}

/// Checks that a stop ends also an `acquire` that would not have to wait.
pub(super) fn a_stop_is_heard<L: LockUnderTest>(harness: &LockHarness<L>) {
    if !harness.hears_stops {
        return;
    }
    for is_free in [true, false] {
        let (lock, permits, source) = (harness.make(), harness.permits, StopSource::new());
        Play::new().stop_token(source.token()).run(async move {
            let inside = core::iter::from_fn(|| lock.try_acquire()).take(if is_free { 0 } else { permits });
            let inside: Vec<_> = inside.collect();
            source.request_stop(StopReason::Requested);
            let entered = pin!(catch_stopped(lock.acquire())).await;
            assert!(entered.is_err(), "a task that was requested to stop got in");
            drop((entered, inside));
            assert_free(&lock, permits);
        });
    }
}
