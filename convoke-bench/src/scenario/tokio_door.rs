//! Convoke inside a tokio program: children of a scope in one tokio task, and on tokio's worker threads, beside what a tokio program does
//! without it. Both run on the same runtime.

use std::hint::black_box;
use std::time::{Duration, Instant};

use convoke::scope::{Scope, scope, scope_on};
use convoke_tokio::{Workers, run};
use tokio::runtime::Runtime;
use tokio::task::JoinSet;

use super::spawn_join::{self, AT_ONCE};
use super::{CONVOKE, Scenario};
use crate::peer::{inside_tokio, tokio_pool, tokio_run_loop};

/// Tasks of one scope or `JoinSet`.
const CHILDREN: u64 = 100;

pub(super) fn scenarios() -> Vec<Scenario> {
    vec![
        Scenario::new(
            "tokio_door_spawn",
            "inside one task of tokio, spawn a no-op task and await its handle",
        )
        .contestant(CONVOKE, || spawn(tokio_run_loop()))
        .contestant("tokio", || tokio_spawn(tokio_run_loop())),
        Scenario::new(
            "tokio_door_children",
            "inside one task of tokio, 100 no-op children of a scope or a `JoinSet`",
        )
        .batch(CHILDREN)
        .contestant(CONVOKE, || children(tokio_run_loop()))
        .contestant("tokio", || tokio_children(tokio_run_loop())),
        Scenario::new(
            "tokio_door_run",
            "begin a chain inside a task of tokio, or a task of tokio, and await it",
        )
        .contestant(CONVOKE, || chains(tokio_run_loop()))
        .contestant("tokio", || tokio_spawn(tokio_run_loop())),
        Scenario::new(
            "tokio_door_workers_2",
            "on 2 threads of tokio, spawn a no-op task and await its handle, 1000 at once",
        )
        .batch(AT_ONCE)
        .contestant(CONVOKE, workers)
        .contestant("tokio", spawn_join::tokio),
    ]
}

/// Runs the body in a chain, inside a task of this runtime.
fn inside<B, F>(runtime: &Runtime, body: B) -> Duration
where
    B: FnOnce(Scope<Duration>) -> F + Send + 'static,
    F: Future<Output = Duration> + Send + 'static,
{
    inside_tokio(runtime, async { run(async { scope(body).await }).await.expect("nobody stops it") })
}

fn spawn(runtime: Runtime) -> impl FnMut(u64) -> Duration {
    move |ops| {
        inside(&runtime, move |s| async move {
            let start = Instant::now();
            for op in 0..ops {
                black_box(s.spawn_future(async move { black_box(op) }).await);
            }
            start.elapsed()
        })
    }
}

fn tokio_spawn(runtime: Runtime) -> impl FnMut(u64) -> Duration {
    move |ops| {
        inside_tokio(&runtime, async move {
            let start = Instant::now();
            for op in 0..ops {
                black_box(tokio::spawn(async move { black_box(op) }).await.expect("it does not panic"));
            }
            start.elapsed()
        })
    }
}

fn children(runtime: Runtime) -> impl FnMut(u64) -> Duration {
    move |ops| {
        inside(&runtime, move |_| async move {
            let start = Instant::now();
            for _ in 0..ops / CHILDREN {
                scope(async |s: Scope<()>| {
                    (0..CHILDREN).for_each(|op| s.spawn(async move { _ = black_box(op) }))
                })
                .await;
            }
            start.elapsed()
        })
    }
}

fn tokio_children(runtime: Runtime) -> impl FnMut(u64) -> Duration {
    move |ops| {
        inside_tokio(&runtime, async move {
            let start = Instant::now();
            for _ in 0..ops / CHILDREN {
                let mut children = JoinSet::new();
                for op in 0..CHILDREN {
                    children.spawn(async move { _ = black_box(op) });
                }
                while children.join_next().await.is_some() {}
            }
            start.elapsed()
        })
    }
}

fn chains(runtime: Runtime) -> impl FnMut(u64) -> Duration {
    move |ops| {
        inside_tokio(&runtime, async move {
            let start = Instant::now();
            for op in 0..ops {
                black_box(run(async move { black_box(op) }).await.expect("nobody stops it"));
            }
            start.elapsed()
        })
    }
}

fn workers() -> impl FnMut(u64) -> Duration {
    let runtime = tokio_pool(2);
    let workers = Workers::on(runtime.handle());
    move |ops| {
        let workers = workers.clone();
        inside(&runtime, move |_| async move {
            scope_on(&workers, async |s| spawn_join::spawn_all(s, ops).await).await
        })
    }
}
