//! Who is inside: never too many, on one thread and on several, and what they do there is seen by the next.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::super::play::run;
use super::{Harness, LockUnderTest, assert_free, enter};
use convoke_exec::ThreadPool;
use convoke_task::{checkpoint, launch, scope};

const ROUNDS: usize = 4;
/// More than there is room for.
const MORE: usize = 4;
const THREADS: usize = 3;
const ROUNDS_ON_THREADS: usize = if cfg!(miri) { 10 } else { 200 };

/// How many are inside, and the most there have been.
#[derive(Default)]
struct Crowd {
    now: AtomicUsize,
    most: AtomicUsize,
}

impl Crowd {
    #[track_caller]
    fn come(&self, permits: usize) {
        let now = self.now.fetch_add(1, Ordering::Relaxed) + 1;
        self.most.fetch_max(now, Ordering::Relaxed);
        assert!(now <= permits, "{now} are inside a lock that lets {permits} in");
    }

    fn go(&self) {
        self.now.fetch_sub(1, Ordering::Relaxed);
    }
}

pub(super) fn at_most_so_many_are_inside<L: LockUnderTest>(harness: &Harness<L>) {
    let (lock, crowd) = (Arc::new(harness.make()), Arc::new(Crowd::default()));
    let (permits, hears_stops) = (harness.permits, harness.hears_stops);
    let (shared, seen) = (lock.clone(), crowd.clone());
    run(async move {
        scope(async |s| {
            for _ in 0..permits + MORE {
                let (lock, crowd) = (shared.clone(), seen.clone());
                s.spawn(async move {
                    for _ in 0..ROUNDS {
                        let held = enter(&*lock, hears_stops).await;
                        crowd.come(permits);
                        checkpoint().await;
                        crowd.go();
                        drop(held);
                        checkpoint().await;
                    }
                });
            }
        })
        .await;
    });
    let most = crowd.most.load(Ordering::Relaxed);
    assert_eq!(most, permits, "a lock that lets {permits} in is of use to all of them at a time");
    assert_free(&*lock, permits);
}

/// Reads and writes in two steps: if two are there at a time, one of them is lost.
pub(super) fn who_is_inside_sees_what_those_before_did<L: LockUnderTest>(harness: &Harness<L>) {
    let (lock, crowd) = (Arc::new(harness.make()), Arc::new(Crowd::default()));
    let value = Arc::new(AtomicUsize::new(0));
    let (permits, hears_stops) = (harness.permits, harness.hears_stops);
    let pool = ThreadPool::new(THREADS).expect("threads to test with");
    let chains: Vec<_> = (0..permits + THREADS)
        .map(|_| {
            let (lock, crowd, value) = (lock.clone(), crowd.clone(), value.clone());
            launch(&pool.executor()).start(async move {
                for _ in 0..ROUNDS_ON_THREADS {
                    let held = enter(&*lock, hears_stops).await;
                    crowd.come(permits);
                    if permits == 1 {
                        value.store(value.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
                    }
                    crowd.go();
                    drop(held);
                }
            })
        })
        .collect();
    let users = chains.len();
    for chain in chains {
        chain.wait().unwrap();
    }
    if permits == 1 {
        let seen = value.load(Ordering::Relaxed);
        assert_eq!(seen, users * ROUNDS_ON_THREADS, "somebody has not seen what the one before him did");
    }
    assert_free(&*lock, permits);
}
