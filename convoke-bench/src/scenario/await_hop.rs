//! Awaiting something that happens elsewhere on the same thread: one round through the queue and back.
//!
//! The peers have three ways. Spawning a task and awaiting its handle is the usual one; its cost is mostly
//! that of the task. An actor is a permanent task that is asked through a channel and answers through
//! another. The cheapest hop is a permanent task asked through a bare cell (`…_cell`): two wake-ups, two
//! switches, and no allocation. No user writes that, but it is the mark to beat.

use std::hint::black_box;
use std::rc::Rc;
use std::time::{Duration, Instant};

use tokio::sync::{mpsc, oneshot};

use convoke::env::current;
use convoke::sender::prelude::Scheduler;

use super::ping_pong::OneSlot;
use super::{CONVOKE, Scenario};
use crate::own::Convoke;
use crate::peer::{AsyncTask, Compio, Monoio, OneThread, Smol, Spawner, Tokio};

pub(super) fn scenarios() -> Vec<Scenario> {
    vec![
        Scenario::new(
            "await_hop",
            "await what is done elsewhere in the queue of one's own thread, and go on",
        )
        .contestant(CONVOKE, schedule)
        .contestant("convoke_spawn", spawn::<Convoke>)
        .contestant("convoke_cell", cell::<Convoke>)
        .contestant("tokio", spawn::<Tokio>)
        .contestant("tokio_actor", tokio_actor)
        .contestant("tokio_cell", cell::<Tokio>)
        .contestant("smol", spawn::<Smol>)
        .contestant("smol_cell", cell::<Smol>)
        .contestant("async_task", spawn::<AsyncTask>)
        .contestant("async_task_cell", cell::<AsyncTask>)
        .contestant("compio_cell", cell::<Compio>)
        .contestant("monoio_cell", cell::<Monoio>),
    ]
}

/// A sender that completes on the erased executor of the task.
fn schedule() -> impl FnMut(u64) -> Duration {
    let mut runtime = Convoke::start();
    move |ops| {
        runtime.run(|_| async move {
            let executor = current::executor();
            let start = Instant::now();
            for op in 0..ops {
                black_box(op);
                executor.schedule().await;
            }
            start.elapsed()
        })
    }
}

fn spawn<R: OneThread>() -> impl FnMut(u64) -> Duration {
    let mut runtime = R::start();
    move |ops| {
        runtime.run(|spawner| async move {
            let start = Instant::now();
            for op in 0..ops {
                let op = black_box(op);
                black_box(spawner.spawn(async move { op + 1 }).await);
            }
            start.elapsed()
        })
    }
}

fn cell<R: OneThread>() -> impl FnMut(u64) -> Duration {
    let mut runtime = R::start();
    move |ops| {
        runtime.run(|spawner| async move {
            let (asked, answered) = (Rc::new(OneSlot::default()), Rc::new(OneSlot::default()));
            let (questions, answers) = (Rc::clone(&asked), Rc::clone(&answered));
            let elsewhere = spawner.spawn(async move {
                for _ in 0..ops {
                    answers.put(questions.take().await + 1);
                }
            });
            let start = Instant::now();
            for op in 0..ops {
                asked.put(black_box(op));
                black_box(answered.take().await);
            }
            let elapsed = start.elapsed();
            elsewhere.await;
            elapsed
        })
    }
}

fn tokio_actor() -> impl FnMut(u64) -> Duration {
    let mut runtime = Tokio::start();
    move |ops| {
        runtime.run(|spawner| async move {
            let (ask, mut questions) = mpsc::channel::<(u64, oneshot::Sender<u64>)>(1);
            let elsewhere = spawner.spawn(async move {
                while let Some((question, answer)) = questions.recv().await {
                    answer.send(question + 1).expect("the one who asked waits");
                }
            });
            let start = Instant::now();
            for op in 0..ops {
                let (answer, answered) = oneshot::channel();
                ask.send((black_box(op), answer)).await.expect("the actor is there");
                black_box(answered.await.expect("the actor answers"));
            }
            let elapsed = start.elapsed();
            drop(ask);
            elsewhere.await;
            elapsed
        })
    }
}
