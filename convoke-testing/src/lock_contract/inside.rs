//! Mutual exclusion: never too many holders, on one thread and on several, and each sees what earlier ones
//! wrote.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::super::play::run;
use super::{LockHarness, LockUnderTest, assert_free, enter};
use convoke_exec::ThreadPool;
use convoke_task::{checkpoint, launch, scope};

const ROUNDS: usize = 4;
/// The number of users beyond the number of permits.
const MORE: usize = 4;
const THREADS: usize = 3;
const ROUNDS_ON_THREADS: usize = if cfg!(miri) { 3 } else { 200 };

/// The current and the maximum number of holders.
#[derive(Default)]
struct HolderCount {
    now: AtomicUsize,
    most: AtomicUsize,
}

impl HolderCount {
    #[track_caller]
    fn enter(&self, permits: usize) {
        let now = self.now.fetch_add(1, Ordering::Relaxed) + 1;
        self.most.fetch_max(now, Ordering::Relaxed);
        assert!(now <= permits, "{now} holders are in a lock for {permits}");
    }

    fn leave(&self) {
        self.now.fetch_sub(1, Ordering::Relaxed);
    }
}

pub(super) fn at_most_permits_are_inside<L: LockUnderTest>(harness: &LockHarness<L>) {
    let (lock, holders) = (Arc::new(harness.make()), Arc::new(HolderCount::default()));
    let (permits, hears_stops) = (harness.permits, harness.hears_stops);
    let (shared, seen) = (lock.clone(), holders.clone());
    run(async move {
        scope(async |s| {
            for _ in 0..permits + MORE {
                let (lock, holders) = (shared.clone(), seen.clone());
                s.spawn(async move {
                    for _ in 0..ROUNDS {
                        let held = enter(&*lock, hears_stops).await;
                        holders.enter(permits);
                        checkpoint().await;
                        holders.leave();
                        drop(held);
                        checkpoint().await;
                    }
                });
            }
        })
        .await;
    });
    let most = holders.most.load(Ordering::Relaxed);
    assert_eq!(most, permits, "a lock for {permits} holders must admit as many at a time");
    assert_free(&*lock, permits);
}

/// Checks visibility: each holder reads and writes in two steps, so two holders at a time would lose an
/// increment.
pub(super) fn a_holder_sees_the_writes_of_earlier_ones<L: LockUnderTest>(harness: &LockHarness<L>) {
    let (lock, holders) = (Arc::new(harness.make()), Arc::new(HolderCount::default()));
    let value = Arc::new(AtomicUsize::new(0));
    let (permits, hears_stops) = (harness.permits, harness.hears_stops);
    let pool = ThreadPool::new(THREADS).expect("the system could start threads");
    let launched: Vec<_> = (0..permits + THREADS)
        .map(|_| {
            let (lock, holders, value) = (lock.clone(), holders.clone(), value.clone());
            launch(&pool.executor()).start(async move {
                for _ in 0..ROUNDS_ON_THREADS {
                    let held = enter(&*lock, hears_stops).await;
                    holders.enter(permits);
                    if permits == 1 {
                        value.store(value.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
                    }
                    holders.leave();
                    drop(held);
                }
            })
        })
        .collect();
    let users = launched.len();
    for task in launched {
        task.wait().unwrap();
    }
    if permits == 1 {
        let seen = value.load(Ordering::Relaxed);
        assert_eq!(seen, users * ROUNDS_ON_THREADS, "a holder did not see the write of an earlier one");
    }
    assert_free(&*lock, permits);
}
