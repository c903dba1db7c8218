//! What may be asked of a pinned future that has begun.
//!
//! A future that has begun may have references to its own parts. Whoever looks at all of it through a shared reference ends
//! those that the future writes through: so no `is_some` on a room with such a future in it, no field of what holds one through
//! `Pin`'s `Deref`, and no `Layout::for_value`.

use core::alloc::Layout;
use core::cell::UnsafeCell;
use core::pin::Pin;
use core::ptr::NonNull;

/// Whether there is a future in this room.
#[inline]
pub(crate) fn is_there<F>(room: Pin<&mut Option<F>>) -> bool {
    room.as_pin_mut().is_some()
}

/// The layout of what is there.
///
/// # Safety
/// It is there, and nobody drops it meanwhile.
#[inline]
pub(crate) unsafe fn layout<F: ?Sized>(place: NonNull<F>) -> Layout {
    // SAFETY: the caller's. What is in a cell is not looked at through a shared reference to the cell, and has its layout.
    Layout::for_value(unsafe { &*(place.as_ptr() as *const UnsafeCell<F>) })
}
