//! The handle of a pool.

use core::{fmt, ptr};

use convoke_core::Executor;
use convoke_core::raw::Runnable;

use super::shared::Shared;
use super::worker::Worker;

/// The executor of a [`ThreadPool`](super::ThreadPool): one word, free to clone and to drop.
///
/// - `post` from the pool's own work goes to the queue of the thread it comes from, where idle threads steal it;
///   from anywhere else, to a queue that all threads share.
/// - `dispatch` hands back to a caller that runs on the pool already.
/// - After the pool has ended, what is posted completes as stopped, inside the `post`.
///
/// ```
/// use convoke::prelude::*;
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
    shared: &'static Shared,
}

impl PoolExecutor {
    pub(super) fn new(shared: &'static Shared) -> Self {
        Self { shared }
    }
}

#[diagnostic::do_not_recommend]
impl Executor for PoolExecutor {
    #[inline]
    fn post(&self, runnable: Runnable) {
        if let Err(runnable) = Worker::post_here(self.shared, runnable) {
            self.shared.post_from_outside(runnable);
        }
    }

    #[inline]
    fn dispatch(&self, runnable: Runnable) -> Option<Runnable> {
        if Worker::is_here(self.shared) {
            return Some(runnable);
        }
        self.shared.post_from_outside(runnable);
        None
    }

    fn parallelism(&self) -> usize {
        self.shared.sleepers.workers()
    }
}

impl PartialEq for PoolExecutor {
    fn eq(&self, other: &Self) -> bool {
        ptr::eq(self.shared, other.shared)
    }
}

impl Eq for PoolExecutor {}

impl fmt::Debug for PoolExecutor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PoolExecutor({:p})", self.shared)
    }
}
