//! The block that all threads of a pool share.

use convoke_core::raw::RunQueue;
use convoke_core::raw::sync::Arc;
use convoke_core::{FrameAllocator, Panic};

use super::priorities::Priorities;
use super::sleepers::Sleepers;
use convoke_core::raw::contain;

/// The queues and sleepers of a pool. Its workers, the pool itself and, until it is closed, the gate each own
/// a count of it.
#[derive(Debug)]
pub(super) struct SharedPool {
    pub(super) priorities: Priorities,
    pub(super) sleepers: Sleepers,
    pub(super) allocator: FrameAllocator,
    on_panic: fn(Panic),
}

impl SharedPool {
    pub(super) fn new(
        threads: usize,
        queue_limit: usize,
        allocator: FrameAllocator,
        on_panic: fn(Panic),
    ) -> Arc<Self> {
        let (priorities, sleepers) = (Priorities::new(queue_limit), Sleepers::new(threads));
        Arc::new(Self { priorities, sleepers, allocator, on_panic })
    }

    #[inline]
    pub(super) fn is_stopping(&self) -> bool {
        self.priorities.signals().is_stopping()
    }

    /// Tells the workers to end. Returns the work that waits in the shared queues; later posts there are
    /// refused.
    pub(super) fn stop(&self) -> RunQueue {
        let left = self.priorities.close();
        self.sleepers.wake_all();
        left
    }

    /// Calls `f`. A panic goes to the pool's handler; a panic of the handler is contained too.
    pub(super) fn contain(&self, f: impl FnOnce()) {
        contain(self.on_panic, f);
    }
}
