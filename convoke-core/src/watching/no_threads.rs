//! The variant of `threads` for models, which records nothing: a model has no `static` that outlives it, and
//! its tasks are not watched.

use core::ptr::NonNull;
use std::thread::Thread;

use crate::executor::OwnerId;

/// The free bits in the address of a task, as in `threads`.
pub const MARKS: u8 = 7;

/// Returns false if the thread acts for an owner that may be closed.
pub fn polls(_: NonNull<()>) -> bool {
    !OwnerId::here_may_be_closed()
}

/// Returns `None`: models are not watched.
pub fn watch() -> Option<usize> {
    None
}

pub(super) fn watch_changed() {}

/// The guard of a loop that runs inside a poll. Does nothing.
#[derive(Debug)]
pub struct SetAside;

/// Creates the guard of a loop that runs inside a poll.
pub fn set_aside() -> SetAside {
    SetAside
}

/// A mark, of which a model has any number.
#[derive(Debug)]
pub struct PolledMark;

/// The contents of a slot, of which a model has none.
#[derive(Debug)]
pub struct PolledTask<'a> {
    /// The serial number of the thread, and whether this is the word of an outer task.
    pub place: (u64, bool),
    /// The thread.
    pub thread: &'a Thread,
    /// The task.
    pub task: usize,
    /// True if the thread has begun no poll since the last visit.
    pub same: bool,
}

impl PolledMark {
    /// Returns a mark.
    pub fn take() -> Option<Self> {
        Some(Self)
    }

    /// Visits no thread.
    pub fn read(&self, _: impl FnMut(PolledTask<'_>)) {}
}
