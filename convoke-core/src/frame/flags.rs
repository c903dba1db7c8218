//! The flags of a frame, in one byte; and the one by which a task wakes itself.

use core::ptr;
use core::task::Waker;

use super::Frame;

/// A stop had been requested when this poll began. A later request wakes the task again.
pub(super) const ASKED: u8 = 1;
/// A stop of the task does not, or not always, reach the work in this frame: a shield or a generator is around it,
/// in the same task.
pub(super) const SHELTERED: u8 = 1 << 1;
/// The owner starts with a [`KeptFrame`]: rule 3 of `kept.rs`.
pub(super) const KEPT: u8 = 1 << 2;
/// A future inside must not be dropped yet.
pub(super) const HELD: u8 = 1 << 3;
/// A stop was caught in this poll although the request still holds: see `stop_again.rs`.
pub(super) const CAUGHT: u8 = 1 << 4;

/// The frame is the outermost one of its task.
pub(super) const OUTERMOST: u8 = 1 << 5;
/// The task wakes itself: see [`Frame::wake_task`].
pub(super) const WOKEN: u8 = 1 << 6;

/// Returns the flag of a frame whose work was asked to stop, or none.
#[inline]
pub(super) fn asked_flag(asked: bool) -> u8 {
    if asked { ASKED } else { 0 }
}

impl Frame<'_> {
    /// Returns true if one of these flags is set.
    #[inline]
    pub(super) fn has(&self, flags: u8) -> bool {
        self.flags.get() & flags != 0
    }

    #[inline]
    pub(super) fn set(&self, flag: u8) {
        self.flags.set(self.flags.get() | flag);
    }

    #[inline]
    pub(super) fn clear(&self, flag: u8) {
        self.flags.set(self.flags.get() & !flag);
    }

    /// Wakes the task, as `waker.wake_by_ref()` does. The caller is a future that was polled with this waker, and
    /// returns `Pending` now. If the waker is the task's own, nothing is called: the task sees a flag when its poll
    /// is over.
    #[inline]
    pub fn wake_task(&self, waker: &Waker) {
        if self.has(OUTERMOST) && ptr::eq(self.task.waker, waker) {
            self.set(WOKEN);
        } else {
            waker.wake_by_ref();
        }
    }

    /// Returns true if [`wake_task`](Frame::wake_task) has left the wake to the task whose outermost frame this is.
    #[inline]
    pub fn is_task_woken(&self) -> bool {
        self.has(WOKEN)
    }
}
