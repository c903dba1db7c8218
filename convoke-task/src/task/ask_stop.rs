//! The stop callback that asks a task to stop.

#![allow(unsafe_code)]

use core::ptr::NonNull;

use convoke_core::StopReason;
use convoke_core::raw::OnStop;

use super::header::TaskHeader;

/// A stop request, passed on to the task.
pub(crate) struct AskStop(pub(crate) NonNull<TaskHeader>);

// SAFETY: asking a task to stop may be done from any thread. It is there: the callback is removed before it leaves, and
// removal waits for us.
unsafe impl Send for AskStop {}

impl OnStop for AskStop {
    fn on_stop(self, _: StopReason) {
        // SAFETY: it is there, see above.
        unsafe { TaskHeader::ask_stop(self.0) };
    }
}
