//! `WakeFlag`: merges all wake-ups before the end of a wait into one. It is a state machine without locks and
//! system calls; the poller makes those.
//!
//! 1. The first caller of `set` notifies the kernel, and later ones do not. So while the flag is set the
//!    kernel has been notified, or is about to be.
//! 2. The waiting thread calls `clear` after the kernel has returned, and only then checks for work. So it
//!    sees everything that was done before the flag was set. A `set` after that notifies the kernel again,
//!    for the next wait.

use convoke_core::raw::sync::atomic::{AtomicBool, Ordering};

/// A flag that ends a wait.
#[derive(Debug)]
pub struct WakeFlag {
    is_set: AtomicBool,
}

impl WakeFlag {
    /// Creates a flag that is not set.
    pub fn new() -> Self {
        Self { is_set: AtomicBool::new(false) }
    }

    /// Sets the flag. Returns true if it was not set: the caller must notify the kernel.
    #[must_use = "the wait does not end unless the kernel is notified"]
    pub fn set(&self) -> bool {
        !self.is_set.swap(true, Ordering::AcqRel)
    }

    /// Clears the flag after a wait has ended, for any reason.
    #[inline]
    pub fn clear(&self) {
        // Loaded before it is swapped: mostly it is not set. If it is set just now, the next wait ends at
        // once.
        if self.is_set.load(Ordering::Relaxed) {
            self.is_set.swap(false, Ordering::AcqRel);
        }
    }
}

impl Default for WakeFlag {
    fn default() -> Self {
        Self::new()
    }
}
