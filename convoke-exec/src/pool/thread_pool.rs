//! The pool: owns its threads, and ends them.

use std::io;
use std::thread::{self, JoinHandle};

use convoke_core::raw::Runnable;
use convoke_core::raw::sync::Arc;

use super::port::{LeakedPool, PoolContext, Port};
use super::priority::Priority;
use super::shared::SharedPool;
use super::{PoolExecutor, ThreadPoolBuilder};

/// A work-stealing pool of threads.
///
/// Work is posted through [`executor`](ThreadPool::executor). Each thread has its own queue, first in, first
/// out, and steals from the others when it is empty. Work of another [`Priority`] than normal waits in queues
/// that all threads share.
///
/// **Dropping the pool stops, drains and joins**: running work is finished. Queued work completes as stopped,
/// and so does what those completions post. Then `drop` waits for the threads. If one of the pool's own
/// threads drops it, `drop` does not wait for that thread, which ends after its current work.
///
/// Executors are plain references. Therefore about 100 bytes of each pool stay allocated until the process ends.
///
/// ```
/// use convoke::prelude::*;
/// use convoke::run_on;
///
/// let pool = ThreadPool::new(2).unwrap();
/// let executor = pool.executor();
/// let answer = block_on(async move { run_on(&executor, async { 6 * 7 }).await });
/// assert_eq!(answer, Outcome::Value(42));
/// ```
#[derive(Debug)]
pub struct ThreadPool {
    shared: Arc<SharedPool>,
    leaked: &'static LeakedPool,
    handles: Vec<JoinHandle<()>>,
}

impl ThreadPool {
    /// Creates a pool of `threads` threads.
    ///
    /// # Errors
    /// As [`ThreadPoolBuilder::build`].
    pub fn new(threads: usize) -> io::Result<Self> {
        Self::builder().threads(threads).build()
    }

    /// Returns a builder to configure threads, names and limits.
    pub fn builder() -> ThreadPoolBuilder {
        ThreadPoolBuilder::new()
    }

    pub(super) fn without_threads(shared: Arc<SharedPool>, context: Option<&'static PoolContext>) -> Self {
        let leaked = LeakedPool::leak(&shared, context);
        Self { shared, leaked, handles: Vec::new() }
    }

    pub(super) fn add(&mut self, handle: JoinHandle<()>) {
        self.handles.push(handle);
    }

    /// Returns the executor of the pool, for work of normal priority.
    pub fn executor(&self) -> PoolExecutor {
        PoolExecutor::new(self.port())
    }

    pub(super) fn port(&self) -> &'static Port {
        self.leaked.port(Priority::Normal)
    }

    /// Returns the number of threads.
    pub fn threads(&self) -> usize {
        self.handles.len()
    }

    /// Returns the number of posts that were over the [limit](ThreadPoolBuilder::queue_limit) and completed
    /// as stopped.
    pub fn refused(&self) -> usize {
        self.shared.priorities.refused()
    }
}

impl Drop for ThreadPool {
    fn drop(&mut self) {
        let mut left = self.shared.stop();
        self.leaked.close();
        while let Some(runnable) = left.pop() {
            self.shared.contain(|| runnable.stop());
        }
        // A worker may run work that waits for work that was refused further up on this thread's stack.
        Runnable::stop_deferred();
        for handle in self.handles.drain(..) {
            if handle.thread().id() != thread::current().id() {
                // A worker contains every panic, so the result holds nothing.
                let _ = handle.join();
            }
        }
    }
}
