//! The threads of blocking work. There is never more work than threads: whoever has work takes a permit first.

use core::fmt;
use core::time::Duration;
use std::collections::VecDeque;
use std::io;
use std::thread;

// Not loom's: this is threads and a queue behind one lock, and the process has one that is never dropped.
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};

use convoke_core::Panic;

use super::future::Blocking;
use super::inside::Inside;
use crate::scope::Bound;
use crate::sync::OwnedPermit;

/// How many threads the process's pool has at most.
pub const DEFAULT_THREADS: usize = 256;

/// How long a thread waits for more work before it ends.
const IDLE: Duration = Duration::from_secs(10);

/// It gives back its permit when it is done.
pub(super) type Job = Box<dyn FnOnce() -> OwnedPermit + Send>;

/// Threads for work that blocks: started when they are needed, ended when they have had nothing to do for a while, never more
/// than it says. Clones are the same pool. When the last is dropped, idle threads end.
///
/// ```
/// use convoke::blocking::BlockingPool;
/// use convoke::prelude::*;
///
/// let disk = BlockingPool::new(1); // One at a time.
/// let outcome = sync_wait(task(async move { disk.run(|_| std::fs::metadata(".").is_ok()).await }));
/// assert_eq!(outcome, Outcome::Value(true));
/// ```
#[derive(Clone)]
pub struct BlockingPool {
    pub(super) bound: Bound,
    threads: Arc<Owner>,
}

/// Says to the threads that nobody comes any more.
struct Owner(Arc<Shared>);

struct Shared {
    state: Mutex<State>,
    work: Condvar,
}

struct State {
    jobs: VecDeque<Job>,
    idle: usize,
    closed: bool,
}

impl BlockingPool {
    /// A pool of so many threads at most. None is started yet.
    ///
    /// # Panics
    /// If that is none.
    pub fn new(threads: usize) -> Self {
        assert!(threads > 0, "a pool has one thread or more");
        let state = State { jobs: VecDeque::new(), idle: 0, closed: false };
        let shared = Arc::new(Shared { state: Mutex::new(state), work: Condvar::new() });
        Self { bound: Bound::new(threads), threads: Arc::new(Owner(shared)) }
    }

    /// The pool of [`blocking()`](super::blocking()), of [`DEFAULT_THREADS`].
    pub fn of_the_process() -> &'static Self {
        static POOL: OnceLock<BlockingPool> = OnceLock::new();
        POOL.get_or_init(|| Self::new(DEFAULT_THREADS))
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

    /// Runs a job. Its caller has a permit, so that there is a thread for it, or room for one.
    pub(super) fn post(&self, job: Job) -> io::Result<()> {
        let shared = &self.threads.0;
        let mut state = shared.lock();
        state.jobs.push_back(job);
        if state.idle >= state.jobs.len() {
            drop(state);
            shared.work.notify_one();
            return Ok(());
        }
        drop(state);
        let thread = shared.clone();
        let started = thread::Builder::new().name("convoke-blocking".into()).spawn(move || thread.run());
        started.map(drop).inspect_err(|_| {
            // Not left for others: its caller is told that it does not run.
            let job = shared.lock().jobs.pop_back();
            drop(job);
        })
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn run(&self) {
        let mut state = self.lock();
        loop {
            if let Some(job) = state.jobs.pop_front() {
                drop(state);
                // A job catches what its function throws; the hook has told of anything else.
                let permit = Panic::catch(job);
                // Counted as idle before the permit is given back: whoever takes it finds this thread, and starts no other.
                self.lock().idle += 1;
                // It wakes whoever comes next, by anybody's waker.
                let _ = Panic::catch(|| drop(permit));
                state = self.lock();
                state.idle -= 1;
                continue;
            }
            if state.closed {
                return;
            }
            state.idle += 1;
            let (woken, waited) = self.work.wait_timeout(state, IDLE).unwrap_or_else(PoisonError::into_inner);
            state = woken;
            state.idle -= 1;
            if waited.timed_out() && state.jobs.is_empty() {
                return;
            }
        }
    }
}

impl Drop for Owner {
    fn drop(&mut self) {
        self.0.lock().closed = true;
        self.0.work.notify_all();
    }
}

impl fmt::Debug for BlockingPool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BlockingPool").field("bound", &self.bound).finish_non_exhaustive()
    }
}
