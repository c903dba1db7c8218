//! The twin of `pool.rs` without the feature `pool`: a runtime without a thread pool.

use convoke_core::FrameAllocator;

/// The pool of a runtime that has none.
#[derive(Clone)]
pub(super) struct RuntimePool;

impl RuntimePool {
    pub(super) fn new(_threads: usize, _allocator: FrameAllocator) -> Self {
        Self
    }
}

/// The pool of a runtime, as the runtime owns it.
pub(super) struct OwnedPool(pub(super) RuntimePool);
