//! The stop callback that asks a task to stop.

#![allow(unsafe_code)]

use core::ptr::NonNull;

use convoke_core::StopReason;
use convoke_core::raw::OnStop;

use super::header::TaskHeader;
use super::reference::Alive;

/// A stop callback that passes the request on to a task.
pub(crate) struct AskStop(pub(crate) NonNull<TaskHeader>);

// SAFETY: any thread may ask a task to stop. The task is alive: the callback is removed before the task
// leaves, and removal waits for a callback that runs.
unsafe impl Send for AskStop {}

impl OnStop for AskStop {
    fn on_stop(self, _: StopReason) {
        // SAFETY: the task has not left: the callback is removed before, and removal waits for this call.
        unsafe { Alive::new(self.0) }.ask_stop();
    }
}
