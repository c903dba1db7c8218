//! A field whose destructor is compiled once. The compiler copies the destructor of a type into every codegen
//! unit that drops a value of it, in every crate: that of an environment was 33 times in a small server. A
//! destructor that is a call costs each of them a few bytes.

#![allow(unsafe_code)]

use core::fmt;
use core::mem::ManuallyDrop;
use core::ops::{Deref, DerefMut};
use core::pin::Pin;

use crate::stack::with_room;

/// A value whose destructor is a call of [`DropOutOfLine::drop_out_of_line`].
pub struct OutOfLine<T: DropOutOfLine>(ManuallyDrop<T>);

/// A type with a function that drops its values.
pub trait DropOutOfLine: Sized {
    /// Drops the value, with [`LastUse::drop_here`]. An implementation is `#[inline(never)]`; one that is not generic
    /// is compiled once in the whole program, and a generic one once in each crate.
    fn drop_out_of_line(value: LastUse<'_, Self>);

    /// Returns false if there is nothing to drop. Inlined, for values that are mostly empty.
    #[inline(always)]
    fn has_something_to_drop(&mut self) -> bool {
        true
    }
}

/// The right to drop a value in place: it is not used again.
pub struct LastUse<'a, T>(&'a mut ManuallyDrop<T>);

impl<T> LastUse<'_, T> {
    /// Drops the value here.
    #[inline(always)]
    pub fn drop_here(self) {
        // SAFETY: the destructor of `OutOfLine` makes one `LastUse`, which is consumed here, and nothing uses the
        // value after that destructor.
        unsafe { ManuallyDrop::drop(self.0) }
    }
}

impl<T: DropOutOfLine> OutOfLine<T> {
    /// Takes the value.
    #[inline]
    pub const fn new(value: T) -> Self {
        Self(ManuallyDrop::new(value))
    }

    /// Returns the value of a pinned field.
    #[inline]
    pub fn as_pin(self: Pin<&mut Self>) -> Pin<&mut T> {
        // SAFETY: the value is pinned with `self`: it is dropped in place, and only `&mut Self`, which is not to be
        // had from a pin of a type that is not `Unpin`, gives `&mut T`.
        unsafe { self.map_unchecked_mut(|this| &mut *this.0) }
    }
}

/// A future that can tell if it has ended, or another value that may be there. It is asked through `&mut`, because a
/// future that has started is not inspected through a shared reference.
impl<F> DropOutOfLine for Option<F> {
    #[inline(never)]
    fn drop_out_of_line(future: LastUse<'_, Self>) {
        // It may contain a future like itself, and so on.
        with_room(|| future.drop_here());
    }

    #[inline]
    #[expect(clippy::redundant_pattern_matching, reason = "`is_some` takes a shared reference")]
    fn has_something_to_drop(&mut self) -> bool {
        matches!(self, Some(_))
    }
}

impl<T: DropOutOfLine> Drop for OutOfLine<T> {
    #[inline(always)]
    fn drop(&mut self) {
        if self.0.has_something_to_drop() {
            T::drop_out_of_line(LastUse(&mut self.0));
        }
    }
}

impl<T: DropOutOfLine> Deref for OutOfLine<T> {
    type Target = T;

    #[inline(always)]
    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T: DropOutOfLine> DerefMut for OutOfLine<T> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut T {
        &mut self.0
    }
}

impl<T: DropOutOfLine + fmt::Debug> fmt::Debug for OutOfLine<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

impl<T> fmt::Debug for LastUse<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LastUse").finish_non_exhaustive()
    }
}
