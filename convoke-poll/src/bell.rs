//! Whether the bell was rung that ends a wait: one rings for all who do so before it is answered. The state machine of waking; no
//! lock, and the system calls are those of whoever uses it.
//!
//! 1. The first to ring has the kernel say so; the others leave it at that. So when it is rung the kernel says so, or is about to.
//! 2. Who waits answers when the kernel has said anything, and then looks at what there is to do. So he sees what was done before it
//!    was rung; and whoever rings afterwards rings for the next wait.

use convoke_core::raw::sync::atomic::{AtomicBool, Ordering};

/// See the head of this file.
#[derive(Debug)]
pub struct Bell {
    rung: AtomicBool,
}

impl Bell {
    /// One that was not rung.
    pub fn new() -> Self {
        Self { rung: AtomicBool::new(false) }
    }

    /// True: the caller has the kernel say so.
    #[must_use = "without the kernel nobody hears it"]
    pub fn ring(&self) -> bool {
        !self.rung.swap(true, Ordering::AcqRel)
    }

    /// A wait has ended, for whatever reason.
    #[inline]
    pub fn answer(&self) {
        // Looked at before it is exchanged: mostly nobody has rung. If somebody has just now, the next wait ends at once.
        if self.rung.load(Ordering::Relaxed) {
            self.rung.swap(false, Ordering::AcqRel);
        }
    }
}

impl Default for Bell {
    fn default() -> Self {
        Self::new()
    }
}
