//! Yielding to the back of the queue: the cost of a task switch, alone and among a thousand.
//!
//! monoio cannot yield to the back: a task that wakes itself goes to the front. So it is not in `yield_1000`.

use std::time::{Duration, Instant};

use super::{CONVOKE, Scenario};
use crate::own::Convoke;
use crate::peer::{AsyncTask, Compio, Glommio, Monoio, OneThread, Smol, Spawner, Tokio, TokioLocalSet};

/// Number of tasks in `yield_1000`.
const TASKS: u64 = 1000;
/// Yields of each task in a batch: enough to make the cost of spawning it small.
const EACH: u64 = 100;

pub(super) fn scenarios() -> Vec<Scenario> {
    vec![
        Scenario::new("yield_1", "yield, the only task of its thread")
            .contestant(CONVOKE, alone::<Convoke>)
            .contestant("tokio", alone::<Tokio>)
            .contestant("tokio_local_set", alone::<TokioLocalSet>)
            .contestant("smol", alone::<Smol>)
            .contestant("async_task", alone::<AsyncTask>)
            .contestant("compio", alone::<Compio>)
            .contestant("monoio", alone::<Monoio>)
            .contestant_if(Glommio::starts(), "glommio", alone::<Glommio>),
        Scenario::new("yield_1000", "yield, one of 1000 tasks of a thread that do nothing else")
            .batch(TASKS * EACH)
            .contestant(CONVOKE, together::<Convoke>)
            .contestant("tokio", together::<Tokio>)
            .contestant("tokio_local_set", together::<TokioLocalSet>)
            .contestant("smol", together::<Smol>)
            .contestant("async_task", together::<AsyncTask>)
            .contestant("compio", together::<Compio>)
            .contestant_if(Glommio::starts(), "glommio", together::<Glommio>),
    ]
}

fn alone<R: OneThread>() -> impl FnMut(u64) -> Duration {
    let mut runtime = R::start();
    move |ops| {
        runtime.run(|spawner| async move {
            let start = Instant::now();
            for _ in 0..ops {
                spawner.yield_now().await;
            }
            start.elapsed()
        })
    }
}

fn together<R: OneThread>() -> impl FnMut(u64) -> Duration {
    let mut runtime = R::start();
    move |ops| {
        runtime.run(|spawner| async move {
            let mut tasks = Vec::with_capacity(TASKS as usize);
            let start = Instant::now();
            tasks.extend((0..TASKS).map(|_| {
                spawner.spawn(async move {
                    for _ in 0..ops / TASKS {
                        spawner.yield_now().await;
                    }
                })
            }));
            for task in tasks {
                task.await;
            }
            start.elapsed()
        })
    }
}
