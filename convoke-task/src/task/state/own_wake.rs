//! The transition of a task that wakes itself in its poll. It needs no `WOKEN`: the thread inside knows.

use super::{Access, QUEUED, RUNNING, State, WOKEN};

impl State {
    /// Leaves the inside of a task that has woken itself in this poll, and queues it: the caller creates the
    /// runnable and posts it. A second wake in the same poll has no further effect.
    #[inline]
    pub fn pause_and_queue(&self, access: Access) {
        self.change_own(access, |word| word & !(RUNNING | WOKEN) | QUEUED);
    }
}
