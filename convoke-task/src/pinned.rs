//! Rules for a pinned future that has started.
//!
//! A future that has started may hold references to its own parts. A shared reference to the whole future invalidates those that the future
//! writes through. So never call `is_some` on a slot that holds such a future, never read a field of its holder through `Pin`'s `Deref`, and
//! never call `Layout::for_value` on it.

use core::pin::Pin;

/// Returns true if the slot holds a future.
#[inline]
pub(crate) fn is_there<F>(slot: Pin<&mut Option<F>>) -> bool {
    slot.as_pin_mut().is_some()
}
