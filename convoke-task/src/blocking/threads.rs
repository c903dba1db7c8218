//! The threads of blocking work: started when there is a job for one, ended after [`IDLE`] without one.

use core::time::Duration;
use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use convoke_core::Panic;
use convoke_exec::raw::start_thread;

use convoke_sync::OwnedPermit;

/// The time that a thread waits for a job before it ends.
const IDLE: Duration = Duration::from_secs(10);

/// A job. It returns its permit when it is done.
pub(super) type Job = Box<dyn FnOnce() -> OwnedPermit + Send>;

/// The threads of one pool. Clones are the same threads. When the last is dropped, idle ones end.
#[derive(Clone)]
pub(super) struct Threads(Arc<Owner>);

/// Tells the threads, when it is dropped, that no more jobs come.
struct Owner(Arc<SharedThreads>);

struct SharedThreads {
    state: Mutex<ThreadsState>,
    work: Condvar,
}

struct ThreadsState {
    /// The jobs, each with its number.
    jobs: VecDeque<(u64, Job)>,
    /// The number of the next job.
    numbers: u64,
    /// The number of threads that wait for a job.
    idle: usize,
    closed: bool,
}

impl Threads {
    /// Creates a pool without threads.
    pub(super) fn new() -> Self {
        let state = ThreadsState { jobs: VecDeque::new(), numbers: 0, idle: 0, closed: false };
        let shared = SharedThreads { state: Mutex::new(state), work: Condvar::new() };
        Self(Arc::new(Owner(Arc::new(shared))))
    }

    /// Runs a job. Its caller has a permit, so there is an idle thread for it, or one may be started.
    pub(super) fn post(&self, job: Job) -> io::Result<()> {
        let shared = &self.0.0;
        let mut state = shared.lock();
        let number = state.push(job);
        if state.idle >= state.jobs.len() {
            drop(state);
            shared.work.notify_one();
            return Ok(());
        }
        drop(state);
        let thread = shared.clone();
        let started = start_thread("convoke-blocking".into(), None, Box::new(move || thread.run()));
        started.map(drop).or_else(|error| {
            // The caller is told that the job does not run, so it must not stay queued; unless another thread
            // has it by now.
            let job = shared.lock().take_back(number);
            job.map_or(Ok(()), |job| {
                drop(job);
                Err(error)
            })
        })
    }
}

impl ThreadsState {
    /// Adds a job, and returns its number.
    fn push(&mut self, job: Job) -> u64 {
        let number = self.numbers;
        self.numbers += 1;
        self.jobs.push_back((number, job));
        number
    }

    /// Takes a job back, if no thread has taken it.
    fn take_back(&mut self, number: u64) -> Option<Job> {
        let index = self.jobs.binary_search_by_key(&number, |(number, _)| *number).ok()?;
        self.jobs.remove(index).map(|(_, job)| job)
    }
}

impl SharedThreads {
    fn lock(&self) -> MutexGuard<'_, ThreadsState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs jobs until the thread is idle for too long, or the pool is dropped.
    fn run(&self) {
        let mut state = self.lock();
        loop {
            if let Some((_, job)) = state.jobs.pop_front() {
                drop(state);
                // A job catches a panic of its function; the panic hook has reported any other.
                let permit = Panic::catch(job);
                // Counted as idle before the permit is returned: the next job finds this thread, and starts
                // no other.
                self.lock().idle += 1;
                // Returning the permit wakes the next waiter, by a waker of any origin.
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

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;
    use convoke_sync::Semaphore;

    #[test]
    fn a_job_whose_thread_could_not_be_started_is_taken_back_and_no_other() {
        let ran = Arc::new(AtomicUsize::new(0));
        let semaphore = Arc::new(Semaphore::new(9));
        let job = |number: usize| -> Job {
            let (ran, semaphore) = (ran.clone(), semaphore.clone());
            Box::new(move || {
                ran.store(number, Ordering::Relaxed);
                semaphore.try_acquire_many_owned(1).unwrap()
            })
        };
        let mut state = ThreadsState { jobs: VecDeque::new(), numbers: 0, idle: 0, closed: false };
        let numbers: Vec<_> = (0..3).map(|number| state.push(job(number))).collect();
        drop(state.take_back(numbers[1]).unwrap()());
        assert_eq!(ran.load(Ordering::Relaxed), 1);
        assert!(state.take_back(numbers[1]).is_none());
        state.jobs.pop_front();
        assert!(state.take_back(numbers[0]).is_none(), "another thread has it");
        drop(state.take_back(numbers[2]).unwrap()());
        assert_eq!(ran.load(Ordering::Relaxed), 2);
    }
}
