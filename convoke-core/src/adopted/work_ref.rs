//! A pointer to work that is under way, for those that take part in it.

#![allow(unsafe_code)]

use core::fmt;
use core::ops::Deref;
use core::ptr::NonNull;

/// A pointer to work that is under way: to an operation, or to what it shares with its children. The receivers, stop
/// callbacks and timers of the work have it. It is not counted: the rules of the work say how long it is there.
pub struct WorkRef<T>(NonNull<T>);

impl<T> WorkRef<T> {
    /// Creates a pointer to work.
    ///
    /// # Safety
    /// The work is there, and is not borrowed mutably, whenever the result or a copy of it is dereferenced, and while
    /// what that has returned is used.
    #[inline]
    pub unsafe fn new(work: NonNull<T>) -> Self {
        Self(work)
    }

    /// Returns the address of the work.
    #[inline]
    pub fn pointer(self) -> NonNull<T> {
        self.0
    }
}

impl<T> Deref for WorkRef<T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: `new` requires that the work is there now, and while the result is used.
        unsafe { self.0.as_ref() }
    }
}

impl<T> Clone for WorkRef<T> {
    #[inline]
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for WorkRef<T> {}

impl<T> fmt::Debug for WorkRef<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("WorkRef").field(&self.0).finish()
    }
}
