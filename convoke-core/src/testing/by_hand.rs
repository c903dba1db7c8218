//! An executor whose queue is run by the test.

use crate::Executor;
use crate::executor::{RunQueue, Runnable};
use crate::sync::{Arc, Mutex};

/// An executor whose queue is run by the test.
#[derive(Clone, Debug, Default)]
pub struct ByHand(Arc<Mutex<RunQueue>>);

impl ByHand {
    /// An empty queue.
    pub fn new() -> Self {
        Self::default()
    }

    /// Runs the first in the queue; false if there is none.
    pub fn run_one(&self) -> bool {
        let next = self.0.lock().unwrap().pop();
        next.map(Runnable::run).is_some()
    }

    /// Runs until the queue is empty; says how many.
    pub fn run_all(&self) -> usize {
        core::iter::from_fn(|| self.run_one().then_some(())).count()
    }

    /// How many wait.
    pub fn len(&self) -> usize {
        self.0.lock().unwrap().len()
    }

    /// Whether none waits.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Drops all that waits, unrun.
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
