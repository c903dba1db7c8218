//! A pool for blocking work: threads, and a bound that says how many. There is never more work than threads: whoever has
//! work takes a permit first.

use core::fmt;
// Not loom's: models make pools of their own.
use std::sync::OnceLock;

use convoke_core::env::Local;

use super::future::Blocking;
use super::inside::Inside;
use super::threads::Threads;
use crate::flow::current;
use crate::scope::Bound;

/// How many threads the process's pool has at most.
pub const DEFAULT_THREADS: usize = 256;

/// The key in the environment for whose threads [`blocking()`](super::blocking()) uses below. A runtime says that it is its own.
///
/// ```
/// use convoke::executor::{BlockingPool, POOL};
/// use convoke::env::Changes;
/// use convoke::prelude::*;
/// use convoke::sender::prelude::*;
///
/// let one_at_a_time = Changes::new().local(&POOL, BlockingPool::new(1));
/// let outcome = sync_wait_with(one_at_a_time, task(async { blocking(|_| std::fs::metadata(".").is_ok()).await }));
/// assert_eq!(outcome, Outcome::Value(true));
/// ```
pub static POOL: Local<BlockingPool> = Local::inherited("threads for blocking work");

/// Threads for work that blocks: started when they are needed, ended when they have had nothing to do for a while, never more
/// than it says. Clones are the same pool. When the last is dropped, idle threads end.
///
/// ```
/// use convoke::executor::BlockingPool;
/// use convoke::prelude::*;
///
/// let disk = BlockingPool::new(1); // One at a time.
/// let outcome = block_on(async move { disk.run(|_| std::fs::metadata(".").is_ok()).await });
/// assert_eq!(outcome, Outcome::Value(true));
/// ```
#[derive(Clone)]
pub struct BlockingPool {
    pub(super) bound: Bound,
    pub(super) threads: Threads,
}

impl BlockingPool {
    /// A pool of so many threads at most. None is started yet.
    ///
    /// # Panics
    /// If that is none.
    #[track_caller]
    pub fn new(threads: usize) -> Self {
        assert!(threads > 0, "a pool for blocking work has one thread or more, not 0");
        Self { bound: Bound::new(threads), threads: Threads::new() }
    }

    /// The pool of [`blocking()`](super::blocking()) where nothing else is said, of [`DEFAULT_THREADS`].
    pub fn of_the_process() -> &'static Self {
        static POOL: OnceLock<BlockingPool> = OnceLock::new();
        POOL.get_or_init(|| Self::new(DEFAULT_THREADS))
    }

    /// The pool that was named for the running task, or the process's.
    pub(super) fn of_this_task() -> Self {
        current::local(&POOL).unwrap_or_else(|| Self::of_the_process().clone())
    }

    /// As [`blocking()`](super::blocking()), on a thread of this pool.
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
