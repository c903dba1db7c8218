//! Who comes in: all who wait, and in their order where that is promised.

use std::sync::{Arc, Mutex};

use super::super::play::run;
use super::super::wait_all_blocked::wait_all_blocked;
use super::{Harness, LockUnderTest, assert_free, enter};
use convoke_task::{checkpoint, scope};

const WAITERS: usize = 6;

pub(super) fn all_who_wait_come_in<L: LockUnderTest>(harness: &Harness<L>) {
    let lock = Arc::new(harness.make());
    let came = Arc::new(Mutex::new(Vec::new()));
    let (permits, hears_stops) = (harness.permits, harness.hears_stops);
    let (shared, seen) = (lock.clone(), came.clone());
    run(async move {
        scope(async |s| {
            let mut inside = Vec::new();
            for _ in 0..permits {
                inside.push(enter(&*shared, hears_stops).await);
            }
            assert!(shared.try_acquire().is_none(), "nobody comes in where there is no room");
            for number in 0..WAITERS {
                let (lock, seen) = (shared.clone(), seen.clone());
                s.spawn(async move {
                    let _held = enter(&*lock, hears_stops).await;
                    seen.lock().unwrap().push(number);
                    checkpoint().await;
                });
                wait_all_blocked().await;
            }
            assert_eq!(seen.lock().unwrap().len(), 0, "all wait while there is no room");
            while let Some(held) = inside.pop() {
                drop(held);
                checkpoint().await;
            }
        })
        .await;
    });
    let mut came = came.lock().unwrap().clone();
    if !harness.in_order {
        came.sort_unstable();
    }
    assert_eq!(came, (0..WAITERS).collect::<Vec<_>>(), "in this order they came in who waited in that order");
    assert_free(&*lock, permits);
}
