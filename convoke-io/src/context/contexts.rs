//! `Contexts`: the I/O contexts of a runtime, as the tasks of that runtime find them.

use core::fmt;
use std::sync::Arc;

use convoke_core::env::Local;
use convoke_core::raw::sync::atomic::{AtomicUsize, Ordering};

use super::IoExecutor;

/// The I/O contexts of the runtime that runs the current task. A runtime sets it; servers spread their
/// connections over them. Without it there is one context: the one of the task.
pub static CONTEXTS: Local<Contexts> = Local::inherited("I/O contexts");

/// The I/O contexts of a runtime, usually one for each core. Clones share the counter of
/// [`next`](Contexts::next).
#[derive(Clone)]
pub struct Contexts(Arc<SharedContexts>);

struct SharedContexts {
    executors: Box<[IoExecutor]>,
    next: AtomicUsize,
}

impl Contexts {
    /// Creates the list.
    ///
    /// # Panics
    /// If `executors` is empty: a runtime has at least one context.
    pub fn new(executors: Vec<IoExecutor>) -> Self {
        assert!(!executors.is_empty(), "a runtime has at least one I/O context");
        Self(Arc::new(SharedContexts { executors: executors.into(), next: AtomicUsize::new(0) }))
    }

    /// Returns all contexts. The first one is that of the thread that runs the program.
    pub fn all(&self) -> &[IoExecutor] {
        &self.0.executors
    }

    /// Returns the contexts in turn, the first one first.
    pub fn next(&self) -> &IoExecutor {
        let next = self.0.next.fetch_add(1, Ordering::Relaxed);
        &self.0.executors[next % self.0.executors.len()]
    }
}

impl fmt::Debug for Contexts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Contexts").field(&self.0.executors.len()).finish()
    }
}
