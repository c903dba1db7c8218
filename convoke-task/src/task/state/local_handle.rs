//! The transitions of a task with a handle that stays on the owner thread. That handle is a bit and no reference, until
//! references are merged.

use super::{Access, HANDLE, LEFT_HERE, Ordering, State};

impl State {
    /// Gives up the task's own reference after [`Leave::Alone`], when the parent was told. Returns true if the
    /// handle was dropped meanwhile: the caller frees the task.
    #[inline]
    #[must_use]
    pub fn left_to_handle(&self) -> bool {
        let own = self.own.load(Ordering::Relaxed);
        self.own.store(own | LEFT_HERE, Ordering::Relaxed);
        own & HANDLE == 0
    }

    /// Drops the handle that stays on the owner thread. Returns true if the caller must free the task.
    #[inline]
    #[must_use]
    pub fn drop_handle(&self) -> bool {
        let own = self.own.load(Ordering::Relaxed);
        if own & HANDLE == 0 {
            return self.drop_counted_handle();
        }
        self.own.store(own & !HANDLE, Ordering::Relaxed);
        own & LEFT_HERE != 0
    }

    /// Drops the handle of a task whose references are merged: it is counted.
    #[cold]
    #[inline(never)]
    fn drop_counted_handle(&self) -> bool {
        self.drop_reference(Access::Local)
    }
}
