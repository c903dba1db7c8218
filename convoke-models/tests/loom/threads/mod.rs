//! An executor for models, with a thread for each piece of work.

#![allow(dead_code, unreachable_pub)]

use std::sync::{Arc, Mutex};

use convoke_core::Executor;
use convoke_core::raw::Runnable;
use convoke_core::raw::sync::thread;

/// An executor that runs each piece of work on its own thread. The threads are joined before the schedule is
/// over.
#[derive(Clone, Default)]
pub struct Threads(Arc<Mutex<Vec<thread::JoinHandle<()>>>>);

impl Threads {
    /// Joins all threads, and those that they have started.
    pub fn join(&self) {
        while let Some(thread) = { self.0.lock().unwrap().pop() } {
            thread.join().unwrap();
        }
    }
}

impl PartialEq for Threads {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Executor for Threads {
    fn post(&self, runnable: Runnable) {
        let thread = thread::spawn(move || runnable.run());
        self.0.lock().unwrap().push(thread);
    }
}
