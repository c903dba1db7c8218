//! The stop callback that asks a task to stop.

#![allow(unsafe_code)]

use core::ptr::NonNull;

use convoke_core::StopReason;
use convoke_core::raw::OnStop;

use super::header::TaskHeader;
use super::reference::Alive;
use super::stop_walk::StopWalk;

/// A stop callback that passes the request on to a task.
pub(crate) struct AskStop(NonNull<TaskHeader>);

// SAFETY: any thread may ask a task to stop, and `new` requires that the task is alive when the callback runs.
unsafe impl Send for AskStop {}

impl AskStop {
    /// Creates the callback.
    ///
    /// # Safety
    /// Fact 3 of `Alive`: the callback is removed before the task leaves, and removal waits for a callback
    /// that runs.
    pub(super) unsafe fn new(task: NonNull<TaskHeader>) -> Self {
        Self(task)
    }
}

impl OnStop for AskStop {
    fn on_stop(self, reason: StopReason) {
        let mut walk = StopWalk::new(reason);
        // SAFETY: fact 3 of `Alive`, which `new` requires.
        unsafe { Alive::new(self.0) }.ask_stop(&mut walk);
        walk.run();
    }
}
