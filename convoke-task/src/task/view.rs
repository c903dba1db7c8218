//! A task as people who look see it, from any thread, while it runs; and where it writes down what they see.

#![allow(unsafe_code)]

use core::panic::Location;

use convoke_core::raw::Waits;

use super::header::TaskHeader;
use super::spawn_site::TaskKind;
use convoke_core::raw::watching::watch;

/// What is seen of a task.
#[derive(Clone, Copy, Debug)]
pub struct TaskView {
    /// Where it was started.
    pub location: &'static Location<'static>,
    /// True while it is polled.
    pub running: bool,
    /// True while it is queued.
    pub queued: bool,
    /// True once it has ended.
    pub done: bool,
    /// True once a stop was requested.
    pub stop_asked: bool,
    /// Where it waits, or waited last.
    pub waits: Option<&'static Location<'static>>,
    /// The number of the home it lives in, or zero if it is shared.
    pub home: u32,
}

impl TaskHeader {
    /// Rules 1 and 5 of the header.
    ///
    /// # Safety
    /// The task is in a list of its parent's, or known to it otherwise, and stays there meanwhile.
    pub(crate) unsafe fn look(&self) -> TaskView {
        // SAFETY: the caller's.
        let kind = unsafe { self.kind_seen() };
        // SAFETY: the side table is freed with the task. Of what is in it we look at this alone: the rest is not ours.
        let kept = kind.side.and_then(|side| unsafe { &(*side.as_ptr()).waits }.get());
        TaskView {
            location: kind.location,
            running: self.state.is_running(),
            queued: self.state.is_queued(),
            done: self.state.is_done(),
            stop_asked: self.state.stop_asked(),
            waits: self.waits_at().or(kept),
            home: self.home_number(),
        }
    }

    /// What people who look see of it: rule 5.
    ///
    /// # Safety
    /// The task is in a list of its parent's for as long as the reference is used.
    unsafe fn kind_seen(&self) -> &TaskKind {
        // SAFETY: the caller's; as above.
        unsafe { self.runnable.kind().cast().as_ref() }
    }

    /// The word in which it says where it waits.
    ///
    /// # Safety
    /// Rule 2: it is used from inside.
    #[inline]
    pub(super) unsafe fn waits(&self) -> &Waits {
        // SAFETY: the caller's: there is no runnable.
        unsafe { self.runnable.waits() }
    }

    /// Where it waits, or waited last, as far as it is known: rule 5.
    fn waits_at(&self) -> Option<&'static Location<'static>> {
        self.runnable.waits_at()
    }

    /// The same for a task that may be watched: there it is known for longer.
    ///
    /// # Safety
    /// Rule 2: called from inside, and used there.
    #[cold]
    pub(super) unsafe fn waits_for_watchers(&self) -> &Waits {
        // SAFETY: the caller's.
        unsafe {
            let Some(watch) = watch() else { return self.waits() };
            let Some(side) = self.try_make_side() else { return self.waits() };
            match self.waits_at() {
                Some(place) => side.waits.set(place),
                None if side.watch.get() != watch => side.waits.clear(),
                None => {}
            }
            side.watch.set(watch);
            self.waits().clear();
            &side.waits
        }
    }
}
