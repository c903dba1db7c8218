//! An executor whose queue is run by the test.

use crate::Executor;
use crate::executor::{RunQueue, Runnable};
use crate::sync::{Arc, Mutex};

/// An executor that runs its queue when the test says so.
#[derive(Clone, Debug, Default)]
pub struct ByHand(Arc<Mutex<RunQueue>>);

impl ByHand {
    /// Creates an executor with an empty queue.
    pub fn new() -> Self {
        Self::default()
    }

    /// Runs the first piece of work in the queue. Returns false if there is none.
    pub fn run_one(&self) -> bool {
        let next = self.0.lock().unwrap().pop();
        next.map(Runnable::run).is_some()
    }

    /// Runs work until the queue is empty. Returns the number of pieces.
    pub fn run_all(&self) -> usize {
        core::iter::from_fn(|| self.run_one().then_some(())).count()
    }

    /// Returns the number of pieces of work in the queue.
    pub fn len(&self) -> usize {
        self.0.lock().unwrap().len()
    }

    /// Returns true if the queue is empty.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Drops all work in the queue without running it.
    pub fn drop_all(&self) {
        while let Some(runnable) = { self.0.lock().unwrap().pop() } {
            drop(runnable);
        }
    }
}

impl PartialEq for ByHand {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

#[diagnostic::do_not_recommend]
impl Executor for ByHand {
    fn post(&self, runnable: Runnable) {
        self.0.lock().unwrap().push(runnable);
    }
}
