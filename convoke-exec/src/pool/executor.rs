//! The executor of a pool.

use core::any::Any;
use core::{fmt, ptr};

use convoke_core::raw::Runnable;
use convoke_core::{Executor, ExecutorRef, FrameAllocator};

use super::port::Port;
use super::priority::Priority;
use super::worker::Worker;

/// Executor of a [`ThreadPool`](super::ThreadPool). It is one word; cloning and dropping it are free.
///
/// - A `post` from the pool's own work goes to the queue of the posting thread, from which idle threads
///   steal. A `post` from elsewhere, or with another priority than normal, goes to a queue that all threads
///   share.
/// - `dispatch` returns the work to a caller that already runs on the pool, whatever its priority: priorities
///   order queued work, and this work need not queue. So a task that continues on the same pool does not
///   change threads.
/// - Executors of different [priority](PoolExecutor::with_priority) are not equal: otherwise a task that
///   moves to another priority would stay where it is.
/// - Once the pool is dropped, work that is posted completes as stopped, inside `post`.
///
/// ```
/// use convoke::Executor;
/// use convoke::prelude::*;
///
/// let pool = ThreadPool::new(2).unwrap();
/// let executor = pool.executor();
/// assert_eq!(executor, pool.executor());
/// assert_eq!(executor.parallelism(), 2);
/// drop(pool);
/// assert_eq!(launch(&executor).start(async { 6 * 7 }).wait(), Outcome::Stopped);
/// ```
#[derive(Clone, Copy)]
pub struct PoolExecutor {
    port: &'static Port,
}

impl PoolExecutor {
    pub(super) fn new(port: &'static Port) -> Self {
        Self { port }
    }

    /// Returns an executor of the same pool for work of another priority. Work that is started there inherits
    /// the executor, and with it the priority.
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
    ///         s.child().on(&idle).spawn(async { /* when there is nothing else to do */ });
    ///         s.child().on(&urgent).spawn(async { /* before everything else */ });
    ///     })
    ///     .await
    /// });
    /// assert_eq!(outcome, Outcome::Value(()));
    /// ```
    pub fn with_priority(self, priority: Priority) -> Self {
        Self::new(self.port.sibling(priority))
    }

    /// Returns the priority of work that is posted through this executor.
    pub fn priority(&self) -> Priority {
        self.port.priority
    }
}

#[diagnostic::do_not_recommend]
impl Executor for PoolExecutor {
    // Compiled once, with the table of its functions.
    #[inline(never)]
    fn erased(self) -> ExecutorRef {
        ExecutorRef::erase(self)
    }

    #[inline]
    fn post(&self, runnable: Runnable) {
        if let Err(runnable) = Worker::post_local(self.port, runnable) {
            self.port.post(runnable);
        }
    }

    #[inline]
    fn dispatch(&self, runnable: Runnable) -> Option<Runnable> {
        if Worker::is_current(self.port) {
            return Some(runnable);
        }
        self.port.post(runnable);
        None
    }

    fn parallelism(&self) -> usize {
        self.port.threads()
    }

    fn context(&self) -> Option<&(dyn Any + Send + Sync)> {
        self.port.context()
    }

    fn allocator(&self) -> FrameAllocator {
        self.port.allocator()
    }
}

/// Equal if pool and priority are equal: a task that moves to another priority must not be told that it is
/// already there.
impl PartialEq for PoolExecutor {
    fn eq(&self, other: &Self) -> bool {
        ptr::eq(self.port, other.port)
    }
}

impl Eq for PoolExecutor {}

impl fmt::Debug for PoolExecutor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.priority() {
            Priority::Normal => write!(f, "PoolExecutor({:p})", self.port.address()),
            priority => write!(f, "PoolExecutor({:p}, {priority:?})", self.port.address()),
        }
    }
}
