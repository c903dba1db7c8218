//! Order: all waiters get in, and in the order of their waits where that is promised.

use std::sync::{Arc, Mutex};

use super::super::play::run;
use super::super::wait_all_blocked::wait_all_blocked;
use super::{LockHarness, LockUnderTest, assert_free, enter};
use convoke_task::{checkpoint, scope};

const WAITERS: usize = 6;

pub(super) fn all_waiters_get_in<L: LockUnderTest>(harness: &LockHarness<L>) {
    let lock = Arc::new(harness.make());
    let entered = Arc::new(Mutex::new(Vec::new()));
    let (permits, hears_stops) = (harness.permits, harness.hears_stops);
    let (shared, seen) = (lock.clone(), entered.clone());
    run(async move {
        scope(async |s| {
            let mut inside = Vec::new();
            for _ in 0..permits {
                inside.push(enter(&*shared, hears_stops).await);
            }
            assert!(shared.try_acquire().is_none(), "`try_acquire` succeeded without a free permit");
            for number in 0..WAITERS {
                let (lock, seen) = (shared.clone(), seen.clone());
                s.spawn(async move {
                    let _held = enter(&*lock, hears_stops).await;
                    seen.lock().unwrap().push(number);
                    checkpoint().await;
                });
                wait_all_blocked().await;
            }
            assert_eq!(seen.lock().unwrap().len(), 0, "a waiter got in without a free permit");
            while let Some(held) = inside.pop() {
                drop(held);
                checkpoint().await;
            }
        })
        .await;
    });
    let mut entered = entered.lock().unwrap().clone();
    if !harness.in_order {
        entered.sort_unstable();
    }
    assert_eq!(entered, (0..WAITERS).collect::<Vec<_>>(), "the waiters got in out of order");
    assert_free(&*lock, permits);
}
