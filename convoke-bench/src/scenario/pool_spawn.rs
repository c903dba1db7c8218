//! Spawning no-ops from inside a pool and joining all of them: the cost of a task.
//!
//! All contestants spawn the same number before joining, because a task costs more the fewer of its
//! predecessors still fit into the cache.

use std::time::{Duration, Instant};

use convoke::ThreadPool;
use convoke::sender::prelude::Scheduler;

use super::{CONVOKE, Scenario};
use crate::measure::time;
use crate::own::{BoxedBatch, Stopwatch, inside, leaked_env, spawn};
use crate::peer::{SmolPool, inside_tokio, rayon_pool, tokio_pool};

/// Number of tasks spawned before the first is joined.
const AT_ONCE: u64 = 100_000;

pub(super) fn scenarios() -> Vec<Scenario> {
    vec![
        scenario(
            "pool_spawn_1",
            "spawn a no-op from inside a pool of 1 thread and join it, 100 000 at once",
            1,
        ),
        scenario(
            "pool_spawn_2",
            "spawn a no-op from inside a pool of 2 threads and join it, 100 000 at once",
            2,
        ),
    ]
}

fn scenario(name: &'static str, about: &'static str, workers: usize) -> Scenario {
    Scenario::new(name, about)
        .batch(AT_ONCE)
        .contestant(CONVOKE, move || convoke(workers))
        .contestant("convoke_freed_early", move || freed_early(workers))
        .contestant("tokio", move || tokio(workers))
        .contestant("smol", move || smol(workers))
        .contestant("rayon", move || rayon(workers))
}

/// One box per operation, stored until all have completed, as the peers' handles do; the last one frees them.
fn convoke(workers: usize) -> impl FnMut(u64) -> Duration {
    let pool = ThreadPool::new(workers).expect("a pool starts");
    let batch = BoxedBatch::leak(pool.executor());
    move |ops| {
        // Moved in, so that the pool lives as long as the contestant.
        let _pool = &pool;
        (0..ops / AT_ONCE).map(|_| batch.run(AT_ONCE)).sum()
    }
}

/// One box per operation, which frees itself on the thread where it ends; joined by a count. Memory that one
/// thread allocates and another frees is expensive for the allocator.
fn freed_early(workers: usize) -> impl FnMut(u64) -> Duration {
    let pool = ThreadPool::new(workers).expect("a pool starts");
    let (env, watch) = (leaked_env(pool.executor()), Stopwatch::leak());
    move |ops| {
        let executor = pool.executor();
        let at_once = |_| {
            inside(&executor, env, move || {
                watch.begin(AT_ONCE);
                (0..AT_ONCE).for_each(|_| spawn(env, executor.schedule(), || watch.one()));
            });
            watch.wait()
        };
        (0..ops / AT_ONCE).map(at_once).sum()
    }
}

/// A vector of handles; a `JoinSet` was tried and takes twice the time and a second allocation per task.
fn tokio(workers: usize) -> impl FnMut(u64) -> Duration {
    let runtime = tokio_pool(workers);
    move |ops| {
        inside_tokio(&runtime, async move {
            let start = Instant::now();
            for _ in 0..ops / AT_ONCE {
                let tasks: Vec<_> = (0..AT_ONCE).map(|_| tokio::spawn(async {})).collect();
                for task in tasks {
                    task.await.expect("the contestant does not panic");
                }
            }
            start.elapsed()
        })
    }
}

fn smol(workers: usize) -> impl FnMut(u64) -> Duration {
    let pool = SmolPool::new(workers);
    move |ops| {
        let executor = pool.executor;
        pool.inside(async move {
            let start = Instant::now();
            for _ in 0..ops / AT_ONCE {
                let tasks: Vec<_> = (0..AT_ONCE).map(|_| executor.spawn(async {})).collect();
                for task in tasks {
                    task.await;
                }
            }
            start.elapsed()
        })
    }
}

fn rayon(workers: usize) -> impl FnMut(u64) -> Duration {
    let pool = rayon_pool(workers);
    move |ops| {
        pool.install(|| {
            time(|| {
                for _ in 0..ops / AT_ONCE {
                    rayon::scope(|scope| (0..AT_ONCE).for_each(|_| scope.spawn(|_| {})));
                }
            })
        })
    }
}
