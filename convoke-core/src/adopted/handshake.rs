//! Did the child complete before its `start` returned? Two sides meet; the second to come goes on.

use crate::sync::atomic::{AtomicBool, Ordering};

/// The meeting of the side that starts a child with the side that completes it, so that a loop over children
/// that complete at once is a loop and not a recursion.
///
/// Whoever comes first leaves, and touches nothing any more; whoever comes second goes on alone.
#[derive(Debug)]
pub struct Handshake {
    one_is_here: AtomicBool,
}

impl Handshake {
    /// Nobody has come yet.
    pub fn new() -> Self {
        Self { one_is_here: AtomicBool::new(false) }
    }

    /// Comes to the meeting. True for the second.
    #[inline]
    #[must_use = "only the second to come may go on"]
    pub fn arrive(&self) -> bool {
        self.one_is_here.swap(true, Ordering::AcqRel)
    }

    /// Makes ready for the next meeting. Called by the second of the last one.
    #[inline]
    pub fn reset(&self) {
        // Relaxed: the next child is started by this thread, and what starts it orders it.
        self.one_is_here.store(false, Ordering::Relaxed);
    }
}

impl Default for Handshake {
    fn default() -> Self {
        Self::new()
    }
}
