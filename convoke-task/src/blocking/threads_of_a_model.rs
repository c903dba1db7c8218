//! The twin of `threads.rs` for models, with the same methods: one thread of the model for each job. Models
//! of blocking work are about the function and its task; the reuse of threads is no part of them.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use convoke_core::raw::sync::thread;

use convoke_sync::OwnedPermit;

/// A job. It returns its permit when it is done.
pub(super) type Job = Box<dyn FnOnce() -> OwnedPermit + Send>;

/// The threads of one pool. They are joined when the last clone is dropped: a schedule is over when all its
/// threads are.
#[derive(Clone, Default)]
pub(super) struct Threads(Arc<Started>);

#[derive(Default)]
struct Started(Mutex<Vec<thread::JoinHandle<()>>>);

impl Threads {
    pub(super) fn new() -> Self {
        Self::default()
    }

    pub(super) fn post(&self, job: Job) -> io::Result<()> {
        let thread = thread::spawn(move || drop(job()));
        self.0.0.lock().unwrap_or_else(PoisonError::into_inner).push(thread);
        Ok(())
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        for thread in self.0.get_mut().unwrap_or_else(PoisonError::into_inner).drain(..) {
            let _ = thread.join();
        }
    }
}
