//! How many threads of each kind a runtime has.

use std::io;
use std::sync::atomic::AtomicUsize;
use std::thread;

use convoke_exec::blocking::DEFAULT_THREADS;
use convoke_exec::{BlockingPool, ThreadPool};

use super::context_thread::ContextThread;
use super::{Runtime, io_context};

/// Says what a [`Runtime`] is made of.
#[derive(Clone, Debug)]
#[must_use = "nothing is made before `build`"]
pub struct RuntimeBuilder {
    contexts: Option<usize>,
    pool_threads: Option<usize>,
    blocking_threads: usize,
}

impl RuntimeBuilder {
    pub(super) fn new() -> Self {
        Self { contexts: None, pool_threads: None, blocking_threads: DEFAULT_THREADS }
    }

    /// How many I/O contexts; the first is on the thread that runs the program. At least one.
    pub fn contexts(mut self, contexts: usize) -> Self {
        self.contexts = Some(contexts);
        self
    }

    /// How many threads the pool has. At least one.
    pub fn pool_threads(mut self, threads: usize) -> Self {
        self.pool_threads = Some(threads);
        self
    }

    /// How many threads there may be for blocking work. At least one.
    pub fn blocking_threads(mut self, threads: usize) -> Self {
        self.blocking_threads = threads;
        self
    }

    /// Makes it, and starts its threads.
    ///
    /// # Errors
    /// If the system has no threads or descriptors for it.
    pub fn build(self) -> io::Result<Runtime> {
        let cores = thread::available_parallelism().map_or(1, usize::from);
        let own = io_context()?;
        let others =
            (1..self.contexts.unwrap_or(cores)).map(ContextThread::start).collect::<io::Result<Vec<_>>>()?;
        let pool = ThreadPool::new(self.pool_threads.unwrap_or(cores).max(1))?;
        let mut executors = vec![own.executor()];
        executors.extend(others.iter().map(ContextThread::executor));
        Ok(Runtime {
            _others: others,
            pool,
            blocking: BlockingPool::new(self.blocking_threads.max(1)),
            own,
            executors,
            next: AtomicUsize::new(0),
        })
    }
}
