//! Rules for a pinned future that has started.
//!
//! A future that has started may hold references to its own parts. A shared reference to the whole future invalidates those that the future
//! writes through. So never call `is_some` on a slot that holds such a future, never read a field of its holder through `Pin`'s `Deref`, and
//! never call `Layout::for_value` on it.

#![allow(unsafe_code)]

use core::alloc::Layout;
use core::cell::UnsafeCell;
use core::pin::Pin;
use core::ptr::NonNull;

/// Returns true if the slot holds a future.
#[inline]
pub(crate) fn is_there<F>(slot: Pin<&mut Option<F>>) -> bool {
    slot.as_pin_mut().is_some()
}

/// Returns the layout of a future.
///
/// # Safety
/// The future is alive, and is not dropped during the call.
#[inline]
pub(crate) unsafe fn layout<F: ?Sized>(future: NonNull<F>) -> Layout {
    // SAFETY: the future is alive during the call: the contract of this function, which `Framed::drop` keeps by
    // its ownership. The contents of a cell are not read through a shared reference to the cell, which has the same
    // layout.
    Layout::for_value(unsafe { &*(future.as_ptr() as *const UnsafeCell<F>) })
}
