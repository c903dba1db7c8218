//! The slots of models: there are none. A model has no `static` that outlives it, and nobody watches its tasks.

use core::ptr::NonNull;
use std::thread::Thread;

use convoke_core::raw::HomeId;

use crate::task::TaskHeader;

pub(crate) fn polls(_: NonNull<TaskHeader>) -> bool {
    !HomeId::here_may_be_closed()
}

pub(crate) fn watch() -> Option<usize> {
    None
}

pub(super) fn watch_changed() {}

#[derive(Debug)]
pub(crate) struct SetAside;

pub(crate) fn set_aside() -> SetAside {
    SetAside
}

#[derive(Debug)]
pub(super) struct Mark;

#[derive(Debug)]
pub(super) struct Polled<'a> {
    pub(super) place: (u64, bool),
    pub(super) thread: &'a Thread,
    pub(super) task: usize,
    pub(super) same: bool,
}

impl Mark {
    pub(super) fn take() -> Option<Self> {
        Some(Self)
    }

    pub(super) fn look(&self, _: impl FnMut(Polled<'_>)) {}
}
