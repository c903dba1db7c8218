//! The handle to where frames live. It is carried by the environment; allocators are built one floor up.

use core::alloc::Layout;
use core::fmt;
use core::ptr::NonNull;
use std::sync::Arc;

/// Memory for frames, behind a handle.
///
/// # Safety
/// What `allocate` returns fits the layout, belongs to the caller alone, and stays valid until it is given to
/// `deallocate` of the same memory, which may happen on any thread.
pub unsafe trait FrameMemory: Send + Sync + fmt::Debug {
    /// Memory for this layout, or `None` if there is none left.
    fn allocate(&self, layout: Layout) -> Option<NonNull<u8>>;

    /// Takes memory back.
    ///
    /// # Safety
    /// `memory` came from `allocate` of this memory with this layout and is not used any more.
    unsafe fn deallocate(&self, memory: NonNull<u8>, layout: Layout);
}

/// Where the frames of a chain live. The default is the system's allocator, and costs nothing to carry.
#[derive(Clone, Debug, Default)]
pub struct FrameAllocator {
    memory: Option<Arc<dyn FrameMemory>>,
}

impl FrameAllocator {
    /// The system's allocator.
    pub const fn system() -> Self {
        Self { memory: None }
    }

    /// Frames from this memory.
    pub fn new(memory: impl FrameMemory + 'static) -> Self {
        Self { memory: Some(Arc::new(memory)) }
    }

    /// Memory for this layout, or `None` if there is none left.
    pub fn allocate(&self, layout: Layout) -> Option<NonNull<u8>> {
        match &self.memory {
            Some(memory) => memory.allocate(layout),
            None if layout.size() == 0 => Some(layout.dangling_ptr()),
            // SAFETY: the size is not zero.
            None => NonNull::new(unsafe { std::alloc::alloc(layout) }),
        }
    }

    /// Takes memory back.
    ///
    /// # Safety
    /// `memory` came from `allocate` of this allocator or a clone, with this layout, and is not used any more.
    pub unsafe fn deallocate(&self, memory: NonNull<u8>, layout: Layout) {
        match &self.memory {
            // SAFETY: the caller's.
            Some(from) => unsafe { from.deallocate(memory, layout) },
            None if layout.size() == 0 => {}
            // SAFETY: the caller's; the memory came from `std::alloc::alloc`.
            None => unsafe { std::alloc::dealloc(memory.as_ptr(), layout) },
        }
    }
}

/// Two handles are equal if they lead to the same memory.
impl PartialEq for FrameAllocator {
    fn eq(&self, other: &Self) -> bool {
        match (&self.memory, &other.memory) {
            (None, None) => true,
            (Some(a), Some(b)) => Arc::ptr_eq(a, b),
            _ => false,
        }
    }
}
