//! The set-up of each peer's runtime: once, here, so that every scenario uses it at its best.
//!
//! - tokio without its I/O and time drivers, which no scenario needs: an idle worker then parks on a condition variable.
//! - smol's executor in its leaked form (`StaticExecutor`), which needs no list of live tasks, and threads that run
//!   `futures_lite`'s `block_on`, as smol's own threads do but without a reactor.
//! - rayon with its defaults.
//! - the single-threaded runtimes in [`one_thread`], and async-task alone in [`bare_queue`].
//! - the single-threaded runtimes with their timers in [`timed`].
//! - frame allocators in [`frames`].

mod bare_queue;
mod frames;
mod one_thread;
mod timed;

pub(crate) use bare_queue::AsyncTask;
pub(crate) use frames::{BumpStack, Frame, FrameAllocator, Mimalloc, RecyclingFrames, SystemFrames};
pub(crate) use one_thread::{Compio, Glommio, Monoio, OneThread, Smol, Spawner, Tokio, TokioLocalSet};
pub(crate) use timed::{Timed, TimedGlommio, TimedMonoio, TimedSmol, TimedTokio};

use std::future::Future;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use async_executor::{Executor, StaticExecutor};
use futures::channel::oneshot;
use futures_lite::future::block_on;
use rayon::{ThreadPool, ThreadPoolBuilder};
use tokio::runtime::{Builder, Runtime};

/// Starts tokio's work-stealing runtime.
pub(crate) fn tokio_pool(workers: usize) -> Runtime {
    Builder::new_multi_thread().worker_threads(workers).build().expect("a tokio pool starts")
}

/// Starts tokio's single-threaded runtime.
pub(crate) fn tokio_run_loop() -> Runtime {
    Builder::new_current_thread().build().expect("a tokio run loop starts")
}

/// Runs `future` as a task of the runtime, on one of its own threads if it has any, and waits for it.
pub(crate) fn inside_tokio(
    runtime: &Runtime,
    future: impl Future<Output = Duration> + Send + 'static,
) -> Duration {
    runtime.block_on(runtime.spawn(future)).expect("the contestant does not panic")
}

pub(crate) fn rayon_pool(workers: usize) -> ThreadPool {
    ThreadPoolBuilder::new().num_threads(workers).build().expect("a rayon pool starts")
}

/// smol's executor and the threads that run it, which end when this is dropped.
pub(crate) struct SmolPool {
    pub(crate) executor: &'static StaticExecutor,
    threads: Vec<(oneshot::Sender<()>, JoinHandle<()>)>,
}

impl SmolPool {
    pub(crate) fn new(workers: usize) -> Self {
        let executor = Executor::new().leak();
        let start = |_| {
            let (end, ended) = oneshot::channel();
            let thread = thread::spawn(move || {
                // An error means that the sender was dropped; either way the pool has ended.
                let _ = block_on(executor.run(ended));
            });
            (end, thread)
        };
        Self { executor, threads: (0..workers).map(start).collect() }
    }

    /// Runs `future` as a task of the executor and waits for it.
    pub(crate) fn inside(&self, future: impl Future<Output = Duration> + Send + 'static) -> Duration {
        block_on(self.executor.spawn(future))
    }
}

impl Drop for SmolPool {
    fn drop(&mut self) {
        for (end, thread) in self.threads.drain(..) {
            drop(end);
            thread.join().expect("a smol thread does not panic");
        }
    }
}
