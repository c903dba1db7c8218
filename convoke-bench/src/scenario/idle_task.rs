//! The memory of a task that waits: how many of them fit.
//!
//! It is what spawning asked of the allocator and has not freed. Each task starts to wait before the next is
//! spawned, so that the run queue stays short. What a fresh runtime stores per task elsewhere (a slot, a
//! link) is included. The handles are stored, because some runtimes free a task that cannot be woken as soon
//! as its handle is dropped; the vector that holds them is not included.

use std::future::Future;
use std::hint::black_box;
use std::rc::Rc;

use convoke::env::Changes;

use super::ping_pong::OneSlot;
use super::{Bytes, CONVOKE, Scenario, Unit};
use crate::allocator::Weighing;
use crate::own::{InScope, run_with};
use crate::peer::{AsyncTask, Compio, Glommio, Monoio, OneThread, Smol, Spawner, Tokio, TokioLocalSet};

const TASKS: u64 = 10_000;

pub(super) fn scenarios() -> Vec<Scenario> {
    vec![
        Scenario::new(
            "idle_task_bytes",
            "the memory of a task that waits with 64 bytes of its own, one of 10 000",
        )
        .batch(TASKS)
        .unit(Unit::Bytes)
        .contestant(CONVOKE, convoke)
        .contestant("convoke_handle", idle_in_system_memory)
        .contestant("tokio", idle::<Tokio>)
        .contestant("tokio_local_set", idle::<TokioLocalSet>)
        .contestant("smol", idle::<Smol>)
        .contestant("async_task", idle::<AsyncTask>)
        .contestant("compio", idle::<Compio>)
        .contestant("monoio", idle::<Monoio>)
        .contestant_if(Glommio::starts(), "glommio", idle::<Glommio>),
    ]
}

/// Frames come from the system here, without the recycling allocator, which would hide what a task takes.
/// There is no handle: the scope owns the task, and an error of the body stops it at the end.
fn convoke() -> impl FnMut(u64) -> Bytes {
    move |ops| {
        run_with(in_system_memory(), move |spawner| async move {
            let begun = Rc::new(OneSlot::default());
            let weighing = Weighing::begin();
            for _ in 0..ops {
                spawner.start(wait(Rc::clone(&begun), InScope::wait()));
                begun.take().await;
            }
            let bytes = weighing.end();
            spawner.stop_all();
            Bytes(bytes)
        })
    }
}

/// Idle tasks in system memory with a handle for each, as the peers have.
fn idle_in_system_memory() -> impl FnMut(u64) -> Bytes {
    move |ops| run_with(in_system_memory(), move |spawner| weigh(spawner, ops))
}

fn in_system_memory() -> Changes {
    Changes::new().allocator(convoke::alloc::FrameAllocator::system())
}

fn idle<R: OneThread>() -> impl FnMut(u64) -> Bytes {
    move |ops| R::start().run(|spawner| weigh(spawner, ops))
}

async fn weigh<S: Spawner>(spawner: S, ops: u64) -> Bytes {
    let begun = Rc::new(OneSlot::default());
    let mut tasks = Vec::with_capacity(ops as usize);
    let weighing = Weighing::begin();
    for _ in 0..ops {
        tasks.push(spawner.spawn(wait(Rc::clone(&begun), S::wait())));
        begun.take().await;
    }
    let bytes = weighing.end();
    for task in tasks {
        spawner.end(task);
    }
    Bytes(bytes)
}

/// Waits with 64 bytes of state, including the pointer to the slot.
async fn wait(begun: Rc<OneSlot>, until_ended: impl Future<Output = ()>) {
    let mut state = black_box([0_u64; 7]);
    begun.put(1);
    until_ended.await;
    black_box(&mut state);
}
