//! The bit by which a thread that asks a task to stop finds the scopes that are open in it.
//!
//! The two sides meet on one word, so that either the thread that asks sees the bit, or the thread inside sees
//! the request: `remote` if a remote thread asks, and `own` if the task is shared. On its owner thread a task
//! is not entered and asked at the same time.

use super::{Access, LISTENED, Ordering, State};

impl State {
    /// Records, from inside, that there is a list of listeners. It has to be reachable by then. Afterwards
    /// [`stop_asked`](State::stop_asked) is true if a thread asked for a stop and did not see the bit.
    pub fn listen(&self, access: Access) {
        if self.remote.load(Ordering::Relaxed) & LISTENED != 0 {
            return;
        }
        self.remote.fetch_or(LISTENED, Ordering::AcqRel);
        if access == Access::Shared {
            // Changes nothing: a later `ask_stop` reads from this, and so sees the bit.
            self.own.fetch_or(0, Ordering::AcqRel);
        }
    }

    /// Returns true if there is a list of listeners. Called after [`ask_stop`](State::ask_stop).
    #[inline]
    pub fn is_listened_to(&self) -> bool {
        self.remote.load(Ordering::Acquire) & LISTENED != 0
    }
}
