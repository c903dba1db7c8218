//! A reference by which any thread asks a task with a handle to stop, apart from that handle.

#![allow(unsafe_code)]

use core::fmt;

use convoke_core::StopReason;

use super::asked_for::AskedFor;
use super::handle_kind::HandleKind;
use super::reference::TaskRef;
use super::stop_walk::StopWalk;
use super::with_handle::Join;

/// A counted reference to a task with a handle. It keeps the task's memory, but neither its future nor its
/// outcome.
pub(crate) struct Asker(TaskRef);

// SAFETY: it is used for `ask_stop`, which writes two atomic words and walks under the locks of `StopWalk`, and for the
// count of references, which is atomic once `Join::asker` has let other threads in.
unsafe impl Send for Asker {}
// SAFETY: a shared reference gives `ask_stop` and `clone`, which use the same atomic words.
unsafe impl Sync for Asker {}

impl<T, K: HandleKind> Join<T, K> {
    /// Returns a reference by which any thread asks the child to stop.
    pub(crate) fn asker(&self) -> Asker {
        let _others_out = self.keep_others_out();
        Asker(self.alive().counted())
    }
}

impl Asker {
    /// Asks the task to stop, and all that is below it.
    pub(crate) fn ask_stop(&self, reason: StopReason) {
        let task = self.0.alive();
        // SAFETY: `Join::asker` took a task with a handle, which has the word (`Ending::ASKED_FOR`), in the memory
        // that the reference keeps. The address is that of the whole task.
        let asked_for = unsafe { AskedFor::behind(task.address()).as_ref() };
        // A request of the parent that came before has its own reason.
        if !task.header().state.stop_asked() {
            asked_for.set(reason);
        }
        let mut walk = StopWalk::new(reason);
        task.ask_stop(&mut walk);
        walk.run();
    }
}

impl Clone for Asker {
    fn clone(&self) -> Self {
        Self(self.0.alive().counted())
    }
}

impl fmt::Debug for Asker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Asker").finish_non_exhaustive()
    }
}
