//! A thread's reference to a value further up on its stack: the loop that it runs, the worker that it is.
//!
//! 1. The pointer is set by [`within`](ScopedRef::within), which borrows the value until it has restored the
//!    pointer of before. So the value exists while the pointer is set.
//! 2. Only the thread that has set the pointer reads it: the type is not `Sync`.

#![allow(unsafe_code)]

use core::cell::Cell;
use core::fmt;
use core::ptr;

/// A reference that is set for the time of a call. For thread-locals: code further down on the stack finds
/// the value through it.
pub struct ScopedRef<T> {
    current: Cell<*const T>,
}

impl<T> ScopedRef<T> {
    /// Creates a reference that is not set.
    pub const fn new() -> Self {
        Self { current: Cell::new(ptr::null()) }
    }

    /// Calls `f` with the reference set to `value`. Restores the one before, also if `f` panics.
    #[inline]
    pub fn within<R>(&self, value: Option<&T>, f: impl FnOnce() -> R) -> R {
        let value = value.map_or(ptr::null(), ptr::from_ref);
        let _restore = Restore { cell: &self.current, before: self.current.replace(value) };
        f()
    }

    /// Calls `f` with the value of the innermost [`within`](ScopedRef::within), if there is one.
    #[inline]
    pub fn with<R>(&self, f: impl FnOnce(Option<&T>) -> R) -> R {
        // SAFETY: rules 1 and 2: the pointer is null, or `within` has set it and is still on this stack. The
        // reference does not leave `f`, which returns before `within` does.
        f(unsafe { self.current.get().as_ref() })
    }

    /// Returns true if the reference is set to just this value.
    #[inline]
    pub fn is(&self, value: &T) -> bool {
        ptr::eq(self.current.get(), value)
    }
}

/// Restores the pointer of before when it is dropped.
struct Restore<'a, T> {
    cell: &'a Cell<*const T>,
    before: *const T,
}

impl<T> Drop for Restore<'_, T> {
    #[inline]
    fn drop(&mut self) {
        self.cell.set(self.before);
    }
}

impl<T> Default for ScopedRef<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> fmt::Debug for ScopedRef<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ScopedRef").field("set", &!self.current.get().is_null()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reference_is_restored_after_a_nested_call_and_after_a_panic() {
        let current = ScopedRef::new();
        let value = || current.with(|value| value.copied());
        current.within(Some(&1), || {
            let panicked = crate::Panic::catch(|| current.within(Some(&2), || panic!("{:?}", value())));
            assert_eq!(panicked.unwrap_err().message(), "Some(2)");
            assert_eq!(value(), Some(1));
            current.within(None, || assert_eq!(value(), None));
            assert_eq!(value(), Some(1));
        });
        assert_eq!(value(), None);
    }
}
