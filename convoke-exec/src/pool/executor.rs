//! The handle of a pool.

use core::{fmt, ptr};

use convoke_core::Executor;
use convoke_core::raw::Runnable;

use super::entrance::Entrance;
use super::priority::Priority;
use super::worker::Worker;

/// The executor of a [`ThreadPool`](super::ThreadPool): one word, free to clone and to drop.
///
/// - `post` from the pool's own work goes to the queue of the thread it comes from, where idle threads steal it;
///   from anywhere else, or with another priority than the normal one, to a queue that all threads share.
/// - `dispatch` hands back to a caller that runs on the pool already, whatever its priority: that orders what waits, and
///   what is handed back need not. So a task that goes on where it is does not hop for it.
/// - Handles of different [priority](PoolExecutor::with_priority) are different places, and not equal: else a task that is
///   moved to one would be left where it is.
/// - After the pool has ended, what is posted completes as stopped, inside the `post`.
///
/// ```
/// use convoke::prelude::*;
/// use convoke::sender::prelude::*;
///
/// let pool = ThreadPool::new(2).unwrap();
/// let executor = pool.executor();
/// assert_eq!(executor, pool.executor());
/// assert_eq!(executor.parallelism(), 2);
/// drop(pool);
/// assert_eq!(sync_wait(schedule(&executor)), Outcome::Stopped);
/// ```
#[derive(Clone, Copy)]
pub struct PoolExecutor {
    entrance: &'static Entrance,
}

impl PoolExecutor {
    pub(super) fn new(entrance: &'static Entrance) -> Self {
        Self { entrance }
    }

    /// A handle to the same pool, for work of another priority. What that starts inherits it, with the executor.
    ///
    /// ```
    /// use convoke::executor::Priority;
    /// use convoke::prelude::*;
    ///
    /// let pool = ThreadPool::new(2).unwrap();
    /// let urgent = pool.executor().with_priority(Priority::High);
    /// let idle = pool.executor().with_priority(Priority::Low);
    /// let outcome = block_on(async move {
    ///     scope(async |s| {
    ///         s.spawn_on(&idle, async { /* when there is nothing else to do */ });
    ///         s.spawn_on(&urgent, async { /* before everything else */ });
    ///     })
    ///     .await
    /// });
    /// assert_eq!(outcome, Outcome::Value(()));
    /// ```
    pub fn with_priority(self, priority: Priority) -> Self {
        Self::new(self.entrance.sibling(priority))
    }

    /// The priority of what is posted through this handle.
    pub fn priority(&self) -> Priority {
        self.entrance.priority
    }
}

#[diagnostic::do_not_recommend]
impl Executor for PoolExecutor {
    #[inline]
    fn post(&self, runnable: Runnable) {
        if let Err(runnable) = Worker::post_here(self.entrance, runnable) {
            self.entrance.post(runnable);
        }
    }

    #[inline]
    fn dispatch(&self, runnable: Runnable) -> Option<Runnable> {
        if Worker::is_here(self.entrance) {
            return Some(runnable);
        }
        self.entrance.post(runnable);
        None
    }

    fn parallelism(&self) -> usize {
        self.entrance.threads()
    }
}

/// By pool and priority: a task that is sent to another priority must not be told that it is there already.
impl PartialEq for PoolExecutor {
    fn eq(&self, other: &Self) -> bool {
        ptr::eq(self.entrance, other.entrance)
    }
}

impl Eq for PoolExecutor {}

impl fmt::Debug for PoolExecutor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.priority() {
            Priority::Normal => write!(f, "PoolExecutor({:p})", self.entrance.number()),
            priority => write!(f, "PoolExecutor({:p}, {priority:?})", self.entrance.number()),
        }
    }
}
