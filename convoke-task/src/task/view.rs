//! A task as inspectors see it, from any thread, while it runs; and where it records what they see.

#![allow(unsafe_code)]

use core::panic::Location;

use convoke_core::raw::WaitLocation;

use super::header::NotLeft;
use super::inside::Inside;
use super::reference::InList;
use convoke_core::raw::watching::watch;

/// A snapshot of a task.
#[derive(Clone, Copy, Debug)]
pub struct TaskView {
    /// The line that spawned it.
    pub location: &'static Location<'static>,
    /// True while it is polled.
    pub running: bool,
    /// True while it is queued.
    pub queued: bool,
    /// True once it has ended.
    pub done: bool,
    /// True once a stop was requested.
    pub stop_asked: bool,
    /// The `await` that it waits at, or waited at last.
    pub waits: Option<&'static Location<'static>>,
    /// The number of its owner thread, or zero if it is shared.
    pub owner_thread: u32,
}

impl InList<'_> {
    /// Returns a snapshot: rules 1 and 5 of the header.
    pub(crate) fn view(self) -> TaskView {
        let header = self.header();
        // SAFETY: rule 5: the task is in a list of its parent, under the lock that `self` stands for. The cold state
        // is freed with the task. Its `waits` is atomic; no other field is touched.
        let (kind, stored) = unsafe {
            let kind = NotLeft::new(header).kind();
            (kind, kind.cold.and_then(|cold| (*cold.as_ptr()).waits.get()))
        };
        TaskView {
            location: kind.location,
            running: header.state.is_running(),
            queued: header.state.is_queued(),
            done: header.state.is_done(),
            stop_asked: header.state.stop_asked(),
            waits: header.runnable.waits_at().or(stored),
            owner_thread: header.owner_number(),
        }
    }
}

impl Inside {
    /// Returns the word in which the task records where it waits.
    #[inline]
    pub(super) fn waits(&self) -> &WaitLocation {
        // SAFETY: rule 2 of the header: this thread is inside, so the task is not queued and the link is
        // unused.
        unsafe { self.header().runnable.waits() }
    }

    /// Returns the word in which a watched task records where it waits: that of the cold state, which lasts
    /// longer.
    #[cold]
    pub(super) fn waits_for_watchers(&self) -> &WaitLocation {
        let Some(watch) = watch() else { return self.waits() };
        let Some(cold) = self.try_make_cold() else { return self.waits() };
        match self.header().runnable.waits_at() {
            Some(location) => cold.waits.set(location),
            None if cold.watch.get() != watch => cold.waits.clear(),
            None => {}
        }
        cold.watch.set(watch);
        self.waits().clear();
        &cold.waits
    }
}
