//! A pool for blocking work: threads, and a bound on their number. Work takes a permit of the bound before it
//! is posted, so there is never more work than threads.

use core::fmt;
// Not loom's: models create pools of their own.
use std::sync::OnceLock;

use convoke_core::env::Local;

use super::future::Blocking;
use super::inside::Inside;
use super::threads::Threads;
use crate::flow::current;
use crate::scope::Bound;

/// The largest number of threads of the process's pool.
pub const DEFAULT_THREADS: usize = 256;

/// The key for the pool that [`blocking()`](super::blocking()) uses in an environment. A runtime sets its
/// own.
///
/// ```
/// use convoke::executor::{BlockingPool, POOL, block_on_with};
/// use convoke::env::Changes;
/// use convoke::prelude::*;
///
/// let one_at_a_time = Changes::new().local(&POOL, BlockingPool::new(1));
/// let outcome = block_on_with(one_at_a_time, async {
///     blocking(|_| std::fs::metadata(".").is_ok()).await
/// });
/// assert_eq!(outcome, Outcome::Value(true));
/// ```
pub static POOL: Local<BlockingPool> = Local::inherited("threads for blocking work");

/// A pool of threads for work that blocks: started when they are needed, ended after ten seconds without
/// work, never more than the given number. Clones are the same pool. When the last is dropped, idle threads
/// end.
///
/// ```
/// use convoke::executor::BlockingPool;
/// use convoke::prelude::*;
///
/// let disk = BlockingPool::new(1); // One at a time.
/// let outcome = block_on(async move {
///     disk.run(|_| std::fs::metadata(".").is_ok()).await
/// });
/// assert_eq!(outcome, Outcome::Value(true));
/// ```
#[derive(Clone)]
pub struct BlockingPool {
    pub(super) bound: Bound,
    pub(super) threads: Threads,
}

impl BlockingPool {
    /// Creates a pool of at most `threads` threads. None is started yet.
    ///
    /// # Panics
    /// If `threads` is 0.
    #[track_caller]
    pub fn new(threads: usize) -> Self {
        assert!(threads > 0, "a pool for blocking work has one thread or more, not 0");
        Self { bound: Bound::new(threads), threads: Threads::new() }
    }

    /// Returns the pool of [`blocking()`](super::blocking()) where the environment names none, with
    /// [`DEFAULT_THREADS`].
    pub fn of_the_process() -> &'static Self {
        static POOL: OnceLock<BlockingPool> = OnceLock::new();
        POOL.get_or_init(|| Self::new(DEFAULT_THREADS))
    }

    /// Returns the pool that the running task's environment names, or the process's.
    pub(super) fn of_this_task() -> Self {
        current::local(&POOL).unwrap_or_else(|| Self::of_the_process().clone())
    }

    /// Runs a function that blocks on a thread of this pool. Otherwise as [`blocking()`](super::blocking()).
    #[track_caller]
    pub fn run<T, F>(&self, f: F) -> Blocking<T, F>
    where
        F: FnOnce(Inside) -> T + Send + 'static,
        T: Send + 'static,
    {
        Blocking::new(self.clone(), f)
    }
}

impl fmt::Debug for BlockingPool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BlockingPool").field("bound", &self.bound).finish_non_exhaustive()
    }
}
