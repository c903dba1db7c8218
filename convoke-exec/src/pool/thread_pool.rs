//! The pool itself: owns its threads, and ends them.

use std::io;
use std::thread::{self, JoinHandle};

use convoke_core::raw::Runnable;
use convoke_core::raw::sync::Arc;

use super::entrance::{Door, Entrance};
use super::priority::Priority;
use super::shared::Shared;
use super::{PoolExecutor, ThreadPoolBuilder};

/// A work-stealing pool of threads.
///
/// Work is posted through [`executor`](ThreadPool::executor); each thread has a queue of its own, first in first
/// out, and robs the others when it is empty. What has another [`Priority`] than the normal one waits in queues that all
/// threads share.
///
/// **Dropping it stops, drains and joins**: work that runs is finished; work that was queued and has not begun
/// completes as stopped, and so does what those completions post; then the threads are waited for. Dropped by one of
/// its own threads, it does not wait for that one, which ends by itself after what it is doing.
///
/// Handles are plain references. For that 80 bytes stay allocated for each pool ever made, until the process ends.
///
/// ```
/// use convoke::prelude::*;
/// use convoke::sender::prelude::*;
///
/// let pool = ThreadPool::new(2).unwrap();
/// let answer = schedule(&pool.executor()).then(|()| 6 * 7);
/// assert_eq!(sync_wait(answer), Outcome::Value(42));
/// ```
#[derive(Debug)]
pub struct ThreadPool {
    shared: Arc<Shared>,
    door: &'static Door,
    handles: Vec<JoinHandle<()>>,
}

impl ThreadPool {
    /// A pool of so many threads.
    ///
    /// # Errors
    /// As [`ThreadPoolBuilder::build`].
    pub fn new(threads: usize) -> io::Result<Self> {
        Self::builder().threads(threads).build()
    }

    /// To say more about it.
    pub fn builder() -> ThreadPoolBuilder {
        ThreadPoolBuilder::new()
    }

    pub(super) fn without_threads(shared: Arc<Shared>) -> Self {
        let door = Door::leak(&shared);
        Self { shared, door, handles: Vec::new() }
    }

    pub(super) fn add(&mut self, handle: JoinHandle<()>) {
        self.handles.push(handle);
    }

    /// The handle through which work comes in, with normal priority.
    pub fn executor(&self) -> PoolExecutor {
        PoolExecutor::new(self.entrance())
    }

    pub(super) fn entrance(&self) -> &'static Entrance {
        self.door.entrance(Priority::Normal)
    }

    /// How many threads it has.
    pub fn threads(&self) -> usize {
        self.handles.len()
    }

    /// How many posts were over the [limit](ThreadPoolBuilder::queue_limit) and completed as stopped.
    pub fn refused(&self) -> usize {
        self.shared.priorities.refused()
    }
}

impl Drop for ThreadPool {
    fn drop(&mut self) {
        let mut left = self.shared.stop();
        self.door.close();
        while let Some(runnable) = left.pop() {
            self.shared.contain(|| runnable.stop());
        }
        // A thread may be at work that waits for what was refused further up on our stack.
        Runnable::stop_deferred();
        for handle in self.handles.drain(..) {
            if handle.thread().id() != thread::current().id() {
                // A worker contains every panic; there is nothing in the result.
                let _ = handle.join();
            }
        }
    }
}
