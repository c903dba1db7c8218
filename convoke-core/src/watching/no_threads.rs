//! The twin of `threads` for models, which records nothing: a model has no `static` that outlives it, and nobody watches its tasks.

use core::ptr::NonNull;
use std::thread::Thread;

use crate::executor::OwnerId;

/// See `threads`.
pub const MARKS: u8 = 7;

/// Returns false if the thread is inside a home that may be closed.
pub fn polls(_: NonNull<()>) -> bool {
    !OwnerId::here_may_be_closed()
}

/// Nobody watches.
pub fn watch() -> Option<usize> {
    None
}

pub(super) fn watch_changed() {}

/// See `threads`.
#[derive(Debug)]
pub struct SetAside;

/// See `threads`.
pub fn set_aside() -> SetAside {
    SetAside
}

/// See `threads`.
#[derive(Debug)]
pub struct Mark;

/// See `threads`.
#[derive(Debug)]
pub struct Polled<'a> {
    /// The thread.
    pub place: (u64, bool),
    /// The thread.
    pub thread: &'a Thread,
    /// The task.
    pub task: usize,
    /// Unchanged since the last call.
    pub same: bool,
}

impl Mark {
    /// Returns a mark.
    pub fn take() -> Option<Self> {
        Some(Self)
    }

    /// Visits no thread.
    pub fn look(&self, _: impl FnMut(Polled<'_>)) {}
}
