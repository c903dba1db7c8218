//! One hop: code that runs on a single-threaded executor posts itself to that executor and continues there.
//!
//! No thread is woken, so only the handle and the queue count. Convoke's executor is used through its own
//! type or through an erased handle; the peers have only one way and appear in both.

use std::future::Future;
use std::time::{Duration, Instant};

use async_executor::LocalExecutor;
use futures_lite::future::block_on;

use convoke::executor::{ExecutorRef, PoolExecutor, RunLoop, RunLoopExecutor};
use convoke::{Executor, ThreadPool};

use super::{CONVOKE, Scenario};
use crate::own::keep_posting;
use crate::peer::{inside_tokio, tokio_run_loop};

pub(super) fn scenarios() -> Vec<Scenario> {
    vec![
        with_peers(
            Scenario::new("hop_typed", "post oneself to the executor one runs on, by its type, and go on")
                .contestant(CONVOKE, || run_loop(|executor| executor))
                .contestant("convoke_pool", || pool_of_one(|executor| executor)),
        ),
        with_peers(
            Scenario::new("hop_erased", "post oneself to the executor one runs on, type-erased, and go on")
                .contestant(CONVOKE, || run_loop(ExecutorRef::new))
                .contestant("convoke_pool", || pool_of_one(ExecutorRef::new)),
        ),
    ]
}

fn with_peers(scenario: Scenario) -> Scenario {
    scenario
        .contestant("tokio_yield", || tokio(tokio::task::yield_now))
        .contestant("tokio_wake", || tokio(futures_lite::future::yield_now))
        .contestant("async_executor", async_executor)
}

/// A run loop on this thread; `handle` creates the handle that is measured.
fn run_loop<X: Executor>(handle: fn(RunLoopExecutor) -> X) -> impl FnMut(u64) -> Duration {
    let run_loop = RunLoop::new();
    keep_posting(handle(run_loop.executor()), 1, move || _ = run_loop.run_ready())
}

/// A pool of one thread; `handle` creates the handle that is measured.
fn pool_of_one<X: Executor>(handle: fn(PoolExecutor) -> X) -> impl FnMut(u64) -> Duration {
    let pool = ThreadPool::new(1).expect("a pool starts");
    keep_posting(handle(pool.executor()), 1, move || _ = &pool)
}

/// tokio's own `yield_now` defers the task until the run loop has polled its driver; a task that simply wakes
/// itself (`tokio_wake`) goes straight to the back of the queue.
fn tokio<F>(hop: fn() -> F) -> impl FnMut(u64) -> Duration
where
    F: Future + Send + 'static,
{
    let runtime = tokio_run_loop();
    move |ops| inside_tokio(&runtime, hops(ops, hop))
}

fn async_executor() -> impl FnMut(u64) -> Duration {
    let executor = LocalExecutor::new().leak();
    move |ops| block_on(executor.run(executor.spawn(hops(ops, futures_lite::future::yield_now))))
}

async fn hops<F: Future>(ops: u64, hop: fn() -> F) -> Duration {
    let start = Instant::now();
    for _ in 0..ops {
        hop().await;
    }
    start.elapsed()
}
