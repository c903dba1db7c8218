//! What all threads of a pool share, and who posts for as long as he does.

use convoke_core::Panic;
use convoke_core::raw::RunQueue;
use convoke_core::raw::sync::Arc;

use super::priorities::Priorities;
use super::sleepers::Sleepers;
use convoke_core::raw::contain;

/// The block behind a pool: its threads keep it, the pool itself, and the door that its handles lead to until it is closed.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) priorities: Priorities,
    pub(super) sleepers: Sleepers,
    on_panic: fn(Panic),
}

impl Shared {
    pub(super) fn new(threads: usize, queue_limit: usize, on_panic: fn(Panic)) -> Arc<Self> {
        Arc::new(Self {
            priorities: Priorities::new(queue_limit),
            sleepers: Sleepers::new(threads),
            on_panic,
        })
    }

    #[inline]
    pub(super) fn is_stopping(&self) -> bool {
        self.priorities.signals().is_stopping()
    }

    /// Tells the workers to end. What waits outside is handed to the caller; later posts from outside are dropped.
    pub(super) fn stop(&self) -> RunQueue {
        let left = self.priorities.close();
        self.sleepers.wake_all();
        left
    }

    /// Calls `f`; a panic goes to the pool's handler, and one of the handler no further than here.
    pub(super) fn contain(&self, f: impl FnOnce()) {
        contain(self.on_panic, f);
    }
}
