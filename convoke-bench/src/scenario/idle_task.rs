//! The memory of a task that waits: how many of them fit.
//!
//! What its spawning asked of the allocator and has not given back, once 10 000 of them wait; the batch before them has
//! grown the queues, which are not counted again. The handles are kept, because a task nobody could wake is freed by some
//! runtimes as soon as its handle goes; the vector that holds them is not counted.

use std::cell::Cell;
use std::future::pending;
use std::hint::black_box;
use std::rc::Rc;

use super::{Bytes, Scenario, Unit};
use crate::allocator::Weighing;
use crate::peer::{AsyncTask, Compio, Glommio, Monoio, OneThread, Smol, Spawner, Tokio};

const TASKS: u64 = 10_000;

pub(super) fn scenarios() -> Vec<Scenario> {
    vec![
        Scenario::new(
            "idle_task_bytes",
            "the memory of a task that waits with 64 bytes of its own, one of 10 000",
        )
        .batch(TASKS)
        .unit(Unit::Bytes)
        .contestant("tokio", idle::<Tokio>)
        .contestant("smol", idle::<Smol>)
        .contestant("async_task", idle::<AsyncTask>)
        .contestant("compio", idle::<Compio>)
        .contestant("monoio", idle::<Monoio>)
        .contestant_if(Glommio::starts(), "glommio", idle::<Glommio>),
    ]
}

fn idle<R: OneThread>() -> impl FnMut(u64) -> Bytes {
    let mut runtime = R::start();
    move |ops| {
        runtime.run(|spawner| async move {
            let waiting = Rc::new(Cell::new(0));
            let mut tasks = Vec::with_capacity(ops as usize);
            let weighing = Weighing::begin();
            tasks.extend((0..ops).map(|_| spawner.spawn(wait(Rc::clone(&waiting)))));
            while waiting.get() < ops {
                spawner.yield_now().await;
            }
            let bytes = weighing.end();
            for task in tasks {
                spawner.end(task);
            }
            // What was ended is freed when its turn comes; monoio, which cannot end a task, never does.
            let mut left = usize::MAX;
            while Rc::strong_count(&waiting) < left {
                left = Rc::strong_count(&waiting);
                spawner.yield_now().await;
            }
            Bytes(bytes)
        })
    }
}

/// 64 bytes that live as long as the wait, the counter's pointer among them.
async fn wait(waiting: Rc<Cell<u64>>) {
    let mut state = black_box([0_u64; 7]);
    waiting.update(|waiting| waiting + 1);
    pending::<()>().await;
    black_box(&mut state);
}
