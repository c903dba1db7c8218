//! The threads of blocking work: started when there is a job for one, ended when they have waited for another for a while.

use core::time::Duration;
use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;

use convoke_core::Panic;

use crate::sync::OwnedPermit;

/// How long a thread waits for more work before it ends.
const IDLE: Duration = Duration::from_secs(10);

/// It gives back its permit when it is done.
pub(super) type Job = Box<dyn FnOnce() -> OwnedPermit + Send>;

/// Clones are the same threads. When the last is dropped, idle ones end.
#[derive(Clone)]
pub(super) struct Threads(Arc<Owner>);

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

impl Threads {
    pub(super) fn new() -> Self {
        let state = State { jobs: VecDeque::new(), idle: 0, closed: false };
        let shared = Shared { state: Mutex::new(state), work: Condvar::new() };
        Self(Arc::new(Owner(Arc::new(shared))))
    }

    /// Runs a job. Its caller has a permit, so that there is a thread for it, or room for one.
    pub(super) fn post(&self, job: Job) -> io::Result<()> {
        let shared = &self.0.0;
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
