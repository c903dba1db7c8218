//! The rendezvous of starting and completing a child: tells whether the child completed before its `start`
//! returned. Nothing is handed over and neither side waits, so it has two states where
//! [`Rendezvous`](super::Rendezvous) has six.

use crate::sync::atomic::{AtomicBool, Ordering};

/// A rendezvous of the code that starts a child with the code that completes it. It turns the recursion over
/// children that complete at once into a loop.
///
/// The first to arrive leaves and touches nothing any more. The second goes on alone.
#[derive(Debug)]
pub struct StartRendezvous {
    first_arrived: AtomicBool,
}

impl StartRendezvous {
    /// Creates a rendezvous at which neither has arrived.
    pub fn new() -> Self {
        Self { first_arrived: AtomicBool::new(false) }
    }

    /// Arrives. Returns true for the second.
    #[inline]
    #[must_use = "only the second to arrive may go on"]
    pub fn arrive(&self) -> bool {
        self.first_arrived.swap(true, Ordering::AcqRel)
    }

    /// Prepares the next rendezvous. Called by the second to arrive at the last one.
    #[inline]
    pub fn reset(&self) {
        // Relaxed: this thread starts the next child, and starting it orders this store before its
        // completion.
        self.first_arrived.store(false, Ordering::Relaxed);
    }
}

impl Default for StartRendezvous {
    fn default() -> Self {
        Self::new()
    }
}
