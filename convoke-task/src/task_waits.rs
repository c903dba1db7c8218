//! A task that waits for something which is no operation: it does not end before this is dropped.

#![allow(unsafe_code)]

use core::alloc::Layout;
use core::fmt;

use convoke_core::raw::{AdoptedMemory, Frame, OwnerRef};

/// Keeps the task that it was made in from ending, until it is dropped, on any thread. The task may be gone
/// when the drop returns.
pub(crate) struct TaskWaits(AdoptedMemory);

impl TaskWaits {
    /// Makes the task of this frame wait, as it waits for an operation that it has adopted.
    ///
    /// # Panics
    /// If the frame allocator has no memory left.
    pub(crate) fn new(frame: &Frame<'_>) -> Self {
        Self(frame.operation_owner().adopt(Layout::new::<u8>()))
    }
}

// SAFETY: `OwnerRef::release`, the only use of the memory, in `drop`, may be called on any thread: operations that are
// adopted end on any.
unsafe impl Send for TaskWaits {}

impl Drop for TaskWaits {
    fn drop(&mut self) {
        // SAFETY: `new` got the memory from `adopt`, and nothing is stored in it. A value is dropped once.
        unsafe { OwnerRef::release(self.0) };
    }
}

impl fmt::Debug for TaskWaits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TaskWaits")
    }
}
