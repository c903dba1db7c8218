//! Scheduling an operation that has its storage already, from inside the pool: the bare cost of its queue.
//!
//! `IN_FLIGHT` operations repeatedly go through the queue, so that no worker starves and no contestant
//! profits from a slot for the single most recent task. In tokio and smol the nearest thing is a task that
//! yields.

use std::future::Future;
use std::time::{Duration, Instant};

use convoke::ThreadPool;

use super::{CONVOKE, Scenario};
use crate::measure::time;
use crate::own::keep_posting;
use crate::peer::{SmolPool, inside_tokio, rayon_pool, tokio_pool};

/// Number of operations in the queue at the same time. Their storage is created inside the sample, once for
/// thousands of ops.
const IN_FLIGHT: u64 = 64;

pub(super) fn scenarios() -> Vec<Scenario> {
    vec![
        scenario(
            "pool_schedule_1",
            "schedule one existing operation from inside a pool of 1 thread, to its completion",
            1,
        ),
        scenario(
            "pool_schedule_2",
            "schedule one existing operation from inside a pool of 2 threads, to its completion",
            2,
        ),
    ]
}

fn scenario(name: &'static str, about: &'static str, workers: usize) -> Scenario {
    Scenario::new(name, about)
        .batch(IN_FLIGHT)
        .contestant(CONVOKE, move || convoke(workers))
        .contestant("tokio_yield", move || tokio(workers, tokio::task::yield_now))
        .contestant("tokio_wake", move || tokio(workers, futures_lite::future::yield_now))
        .contestant("async_task", move || async_task(workers))
        .contestant("rayon_spawn", move || rayon_spawn(workers))
}

/// The operation of `schedule`, connected again in the same storage each time.
fn convoke(workers: usize) -> impl FnMut(u64) -> Duration {
    let pool = ThreadPool::new(workers).expect("a pool starts");
    keep_posting(pool.executor(), IN_FLIGHT, move || _ = &pool)
}

/// tokio's own `yield_now` defers the task until the worker has polled its driver; a task that simply wakes
/// itself (`tokio_wake`) goes straight to the back of the queue.
fn tokio<F>(workers: usize, reschedule: fn() -> F) -> impl FnMut(u64) -> Duration
where
    F: Future + Send + 'static,
{
    let runtime = tokio_pool(workers);
    move |ops| {
        inside_tokio(&runtime, async move {
            let start = Instant::now();
            let round = || tokio::spawn(go_round(ops / IN_FLIGHT, reschedule));
            let rounds: Vec<_> = (0..IN_FLIGHT).map(|_| round()).collect();
            for round in rounds {
                round.await.expect("the contestant does not panic");
            }
            start.elapsed()
        })
    }
}

/// A runnable of async-task, rescheduled by its own waker.
fn async_task(workers: usize) -> impl FnMut(u64) -> Duration {
    let pool = SmolPool::new(workers);
    move |ops| {
        let executor = pool.executor;
        pool.inside(async move {
            let start = Instant::now();
            let round = || executor.spawn(go_round(ops / IN_FLIGHT, futures_lite::future::yield_now));
            let rounds: Vec<_> = (0..IN_FLIGHT).map(|_| round()).collect();
            for round in rounds {
                round.await;
            }
            start.elapsed()
        })
    }
}

async fn go_round<F: Future>(times: u64, reschedule: fn() -> F) {
    for _ in 0..times {
        reschedule().await;
    }
}

/// Not quite equivalent: rayon has no job to schedule twice, so each one spawns, and allocates, the next.
fn rayon_spawn(workers: usize) -> impl FnMut(u64) -> Duration {
    let pool = rayon_pool(workers);
    move |ops| {
        pool.install(|| {
            time(|| rayon::scope(|scope| (0..IN_FLIGHT).for_each(|_| spawn_chain(scope, ops / IN_FLIGHT))))
        })
    }
}

fn spawn_chain<'scope>(scope: &rayon::Scope<'scope>, left: u64) {
    if left > 0 {
        scope.spawn(move |scope| spawn_chain(scope, left - 1));
    }
}
