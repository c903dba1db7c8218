//! Where a task waits, for people who look: one word, written at every wait, read from any thread.

use core::fmt;
use core::panic::Location;
use core::ptr;

// Not loom's: it takes no part in anything.
use std::sync::atomic::{AtomicPtr, Ordering};

/// See the head of this file.
pub struct Waits(AtomicPtr<Location<'static>>);

impl Waits {
    /// It has not waited yet.
    #[inline]
    pub const fn new() -> Self {
        Self(AtomicPtr::new(ptr::null_mut()))
    }

    /// It waits there.
    #[inline]
    pub fn set(&self, place: &'static Location<'static>) {
        self.0.store(ptr::from_ref(place).cast_mut(), Ordering::Relaxed);
    }

    /// Where it waited last.
    pub fn get(&self) -> Option<&'static Location<'static>> {
        // SAFETY: only references that live for ever are stored.
        unsafe { self.0.load(Ordering::Relaxed).as_ref() }
    }
}

impl Default for Waits {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Waits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Waits").field(&self.get()).finish()
    }
}
