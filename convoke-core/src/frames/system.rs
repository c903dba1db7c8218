//! The program's global allocator, which here also serves frames of size zero.

#![allow(unsafe_code)]

use core::alloc::Layout;
use core::ptr::NonNull;

/// Allocates memory for this layout, or returns `None` if there is none left.
#[inline]
pub(super) fn allocate(layout: Layout) -> Option<NonNull<u8>> {
    if layout.size() == 0 {
        return Some(layout.dangling_ptr());
    }
    // SAFETY: the size is not zero.
    NonNull::new(unsafe { std::alloc::alloc(layout) })
}

/// Allocates memory for this layout. If there is none left, it ends the process, as `Box::new` does.
#[inline]
pub(super) fn allocate_or_abort(layout: Layout) -> NonNull<u8> {
    match allocate(layout) {
        Some(memory) => memory,
        None => std::alloc::handle_alloc_error(layout),
    }
}

/// Frees memory.
///
/// # Safety
/// `memory` came from `allocate` with this layout and is not used any more.
#[inline]
pub(super) unsafe fn deallocate(memory: NonNull<u8>, layout: Layout) {
    if layout.size() != 0 {
        // SAFETY: `allocate` got memory of this layout from `std::alloc::alloc`, as the size is not zero, and
        // the owner of the frame, which returns it, does not use it any more.
        unsafe { std::alloc::dealloc(memory.as_ptr(), layout) };
    }
}
