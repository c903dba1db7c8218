//! A task as people who look see it: from any thread, while it runs.

use core::panic::Location;

use super::header::TaskHeader;

/// What is seen of a task.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Look {
    pub(crate) location: &'static Location<'static>,
    pub(crate) running: bool,
    pub(crate) queued: bool,
    pub(crate) done: bool,
    pub(crate) stop_asked: bool,
    pub(crate) waits: Option<&'static Location<'static>>,
    /// The number of the home it lives in, or zero if it is shared.
    pub(crate) home: u32,
}

impl TaskHeader {
    /// Rules 1 and 5 of the header: this is for everybody. The caller sees to it that the task is there.
    pub(crate) fn look(&self) -> Look {
        Look {
            location: self.location,
            running: self.state.is_running(),
            queued: self.state.is_queued(),
            done: self.state.is_done(),
            stop_asked: self.state.stop_asked(),
            waits: self.waits.get(),
            home: self.home_number(),
        }
    }
}
