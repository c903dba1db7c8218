//! Spawning a task from inside a runtime and awaiting its handle: the cost of a task with a handle.
//!
//! On one thread, one task after the other, so that the queue is short and the memory warm. There the
//! awaiting task is suspended and woken each time, and its second poll is part of the cost. A thousand at
//! once show the cost of the task and its handle without that; and on two threads, so that there is something
//! to share.

use std::future::Future;
use std::hint::black_box;
use std::time::{Duration, Instant};

use convoke::sender::{Sender, sync_wait};
use convoke::task::task;
use convoke::{Scope, ThreadPool, scope};

use super::{CONVOKE, Scenario};
use crate::own::Convoke;
use crate::peer::{
    AsyncTask, Compio, Glommio, Monoio, OneThread, Smol, SmolPool, Spawner, Tokio, TokioLocalSet,
    inside_tokio, tokio_pool,
};

/// Tasks spawned before the first is joined, on two threads.
pub(super) const AT_ONCE: u64 = 1000;

pub(super) fn scenarios() -> Vec<Scenario> {
    vec![
        Scenario::new("spawn_join_1", "spawn a no-op task on one's own thread and await its handle")
            .contestant(CONVOKE, || one_by_one::<Convoke, _>(nothing))
            .contestant("tokio", || one_by_one::<Tokio, _>(nothing))
            .contestant("tokio_local_set", || one_by_one::<TokioLocalSet, _>(nothing))
            .contestant("smol", || one_by_one::<Smol, _>(nothing))
            .contestant("async_task", || one_by_one::<AsyncTask, _>(nothing))
            .contestant("compio", || one_by_one::<Compio, _>(nothing))
            .contestant("monoio", || one_by_one::<Monoio, _>(nothing))
            .contestant_if(Glommio::starts(), "glommio", || one_by_one::<Glommio, _>(nothing)),
        Scenario::new(
            "spawn_join_1_at_once",
            "spawn a no-op task on one's own thread and await its handle, 1000 at once",
        )
        .batch(AT_ONCE)
        .contestant(CONVOKE, at_once::<Convoke>)
        .contestant("tokio", at_once::<Tokio>)
        .contestant("tokio_local_set", at_once::<TokioLocalSet>)
        .contestant("smol", at_once::<Smol>)
        .contestant("async_task", at_once::<AsyncTask>)
        .contestant("compio", at_once::<Compio>)
        .contestant("monoio", at_once::<Monoio>)
        .contestant_if(Glommio::starts(), "glommio", at_once::<Glommio>),
        Scenario::new(
            "spawn_join_2",
            "spawn a no-op task on a pool of 2 threads and await its handle, 1000 at once",
        )
        .batch(AT_ONCE)
        .contestant(CONVOKE, convoke)
        .contestant("tokio", tokio)
        .contestant("smol", smol),
        Scenario::new(
            "spawn_future",
            "spawn a task that returns a number on one's own thread and await the number",
        )
        .contestant(CONVOKE, || one_by_one::<Convoke, _>(number))
        .contestant("tokio", || one_by_one::<Tokio, _>(number))
        .contestant("tokio_local_set", || one_by_one::<TokioLocalSet, _>(number))
        .contestant("smol", || one_by_one::<Smol, _>(number))
        .contestant("async_task", || one_by_one::<AsyncTask, _>(number))
        .contestant("compio", || one_by_one::<Compio, _>(number))
        .contestant("monoio", || one_by_one::<Monoio, _>(number))
        .contestant_if(Glommio::starts(), "glommio", || one_by_one::<Glommio, _>(number)),
    ]
}

async fn nothing(_: usize) {}

async fn number(number: usize) -> usize {
    number + 1
}

fn one_by_one<R: OneThread, F>(task: fn(usize) -> F) -> impl FnMut(u64) -> Duration
where
    F: Future + 'static,
{
    let mut runtime = R::start();
    move |ops| {
        runtime.run(|spawner| async move {
            let start = Instant::now();
            for op in 0..ops as usize {
                black_box(spawner.spawn(task(black_box(op))).await);
            }
            start.elapsed()
        })
    }
}

fn at_once<R: OneThread>() -> impl FnMut(u64) -> Duration {
    let mut runtime = R::start();
    move |ops| {
        runtime.run(|spawner| async move {
            let mut tasks = Vec::with_capacity(AT_ONCE as usize);
            let start = Instant::now();
            for _ in 0..ops / AT_ONCE {
                tasks.extend((0..AT_ONCE as usize).map(|op| spawner.spawn(nothing(black_box(op)))));
                for task in tasks.drain(..) {
                    let () = task.await;
                }
            }
            start.elapsed()
        })
    }
}

fn convoke() -> impl FnMut(u64) -> Duration {
    let pool = ThreadPool::new(2).expect("a pool starts");
    move |ops| {
        let all = scope_of(ops);
        sync_wait(task(all).starts_on(&pool.executor())).unwrap()
    }
}

async fn scope_of(ops: u64) -> Duration {
    scope(async |s| spawn_all(s, ops).await).await
}

/// Spawns tasks, many at once, and awaits them.
pub(super) async fn spawn_all(s: Scope<Duration>, ops: u64) -> Duration {
    let mut tasks = Vec::with_capacity(AT_ONCE as usize);
    let start = Instant::now();
    for _ in 0..ops / AT_ONCE {
        tasks.extend((0..AT_ONCE).map(|_| s.spawn_future(async {})));
        for task in tasks.drain(..) {
            task.await;
        }
    }
    start.elapsed()
}

/// A task of tokio's for each operation, many at once, on its threads.
pub(super) fn tokio() -> impl FnMut(u64) -> Duration {
    let runtime = tokio_pool(2);
    move |ops| {
        inside_tokio(&runtime, async move {
            let mut tasks = Vec::with_capacity(AT_ONCE as usize);
            let start = Instant::now();
            for _ in 0..ops / AT_ONCE {
                tasks.extend((0..AT_ONCE).map(|_| tokio::spawn(async {})));
                for task in tasks.drain(..) {
                    task.await.expect("the contestant does not panic");
                }
            }
            start.elapsed()
        })
    }
}

fn smol() -> impl FnMut(u64) -> Duration {
    let pool = SmolPool::new(2);
    move |ops| {
        let executor = pool.executor;
        pool.inside(async move {
            let mut tasks = Vec::with_capacity(AT_ONCE as usize);
            let start = Instant::now();
            for _ in 0..ops / AT_ONCE {
                tasks.extend((0..AT_ONCE).map(|_| executor.spawn(async {})));
                for task in tasks.drain(..) {
                    task.await;
                }
            }
            start.elapsed()
        })
    }
}
