//! The program's global allocator, with frames of no size allowed.

#![allow(unsafe_code)]

use core::alloc::Layout;
use core::ptr::NonNull;

/// Memory for this layout, or `None` if there is none left.
#[inline]
pub(super) fn allocate(layout: Layout) -> Option<NonNull<u8>> {
    if layout.size() == 0 {
        return Some(layout.dangling_ptr());
    }
    // SAFETY: the size is not zero.
    NonNull::new(unsafe { std::alloc::alloc(layout) })
}

/// Takes memory back.
///
/// # Safety
/// `memory` came from `allocate` with this layout and is not used any more.
#[inline]
pub(super) unsafe fn deallocate(memory: NonNull<u8>, layout: Layout) {
    if layout.size() != 0 {
        // SAFETY: the caller's; memory of a size came from `std::alloc::alloc`.
        unsafe { std::alloc::dealloc(memory.as_ptr(), layout) };
    }
}
