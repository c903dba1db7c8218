//! The rendezvous of a loop that starts work with the end of that work, and the outcome that is left there.

#![allow(unsafe_code)]

use core::fmt;

use convoke_core::raw::StartRendezvous;
use convoke_core::raw::sync::UnsafeCell;

/// A rendezvous with room for one outcome.
///
/// 1. The outcome belongs to the completion of the work until that arrives, then to the second to arrive. If
///    the work is inline, both are one thread: the outcome belongs to the completion, and then to the loop.
pub struct Arrival<T> {
    rendezvous: StartRendezvous,
    outcome: UnsafeCell<Option<T>>,
}

impl<T: Send> Arrival<T> {
    /// Creates a rendezvous at which neither has arrived.
    #[inline]
    pub fn new() -> Self {
        Self { rendezvous: StartRendezvous::new(), outcome: UnsafeCell::new(None) }
    }
}

// SAFETY: rule 1 gives the outcome to one thread at a time; `new`, the only constructor, requires that it is
// `Send`.
unsafe impl<T> Send for Arrival<T> {}

impl<T> Arrival<T> {
    /// Prepares for the next work.
    #[inline]
    pub(super) fn reset(&self) {
        self.rendezvous.reset();
    }

    /// Arrives. Returns true for the second.
    #[inline]
    pub(super) fn arrive(&self) -> bool {
        self.rendezvous.arrive()
    }

    /// Stores the outcome.
    ///
    /// # Safety
    /// Rule 1: called by the completion of the work, before it arrives.
    #[inline]
    pub(super) unsafe fn put(&self, outcome: T) {
        // SAFETY: rule 1: the caller is the completion, and has not arrived.
        unsafe { *self.outcome.get() = Some(outcome) };
    }

    /// Takes the outcome.
    ///
    /// # Safety
    /// Rule 1: called by the second to arrive, or after inline work has ended.
    #[inline]
    pub(super) unsafe fn take(&self) -> Option<T> {
        // SAFETY: rule 1: the completion has arrived, or the inline work has ended, and the caller is the one
        // that goes on.
        unsafe { (*self.outcome.get()).take() }
    }
}

impl<T: Send> Default for Arrival<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> fmt::Debug for Arrival<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Arrival").finish_non_exhaustive()
    }
}
