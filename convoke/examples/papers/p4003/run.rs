//! P4003R1 §3.4, `run`: a part of a task on another executor, or with another stop
//! token.
//!
//! `co_await run(ex)(child())` is `run_on(&ex, child()).await`; with a token,
//! `run_until_stopped(token, child()).await`, which returns whether that token has
//! stopped it.

use std::thread;

use convoke::executor::PoolExecutor;
use convoke::prelude::*;
use convoke::run_on;
use convoke::task::{forever, run_until_stopped};

fn here() -> String {
    thread::current().name().unwrap_or("?").to_owned()
}

async fn parent(worker: PoolExecutor) -> String {
    // The child runs on the worker, and its completion returns here.
    let there = run_on(&worker, async { here() }).await;
    format!("{there}, then {}", here())
}

async fn cancellable() -> Result<(), Stopped> {
    let source = StopSource::new();
    let token = source.token();
    let subtask = async move {
        source.request_stop(StopReason::Named("no longer needed"));
        forever().await
    };
    run_until_stopped(token, subtask).await
}

pub(crate) fn run() -> String {
    let pool = |name| ThreadPool::builder().threads(1).name(name).build().unwrap();
    let (main, worker) = (pool("main"), pool("worker"));
    let places = launch(&main.executor()).start(parent(worker.executor())).wait();
    let stopped = block_on(cancellable()).unwrap().unwrap_err();
    format!("{}; {stopped}", places.unwrap())
}
