//! The twin of `threads.rs` for models, with the same methods: a thread of the model's for each job. That real ones are used
//! again is no part of what a model of blocking work is about, which is how work and its task meet.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use convoke_core::raw::sync::thread;

use convoke_sync::OwnedPermit;

/// It gives back its permit when it is done.
pub(super) type Job = Box<dyn FnOnce() -> OwnedPermit + Send>;

/// The threads are joined when the last clone is dropped: a schedule is over when all its threads are.
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
