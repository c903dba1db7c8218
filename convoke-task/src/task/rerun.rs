//! Running a task again that was woken while it ran, on an executor without a queue. Such an executor would
//! run it on top of the current run, deeper and deeper. Instead the outermost run of the task repeats it in a
//! loop.

#![allow(unsafe_code)]

use core::cell::Cell;
use core::ptr::{self, NonNull};

use convoke_core::raw::Runnable;
use convoke_core::raw::sync::thread_local;

use super::header::TaskHeader;

/// A loop on this stack that runs a task again.
struct Again {
    task: NonNull<TaskHeader>,
    /// True if the task has to run once more.
    asked: Cell<bool>,
}

thread_local! {
    /// The innermost loop, or null.
    static AGAIN: Cell<*const Again> = Cell::new(ptr::null());
}

/// Restores the previous loop, also when the task's executor panics.
struct Restore(*const Again);

impl Drop for Restore {
    fn drop(&mut self) {
        AGAIN.with(|again| again.set(self.0));
    }
}

/// Runs the task again: now, or when the loop further up this stack that already does so gets control back.
///
/// # Safety
/// The task is queued, and the caller holds its runnable. The caller does not use the task afterwards.
#[cold]
#[inline(never)]
pub(super) unsafe fn run_again(task: NonNull<TaskHeader>) {
    let around = AGAIN.with(Cell::get);
    // SAFETY: the pointer is to a loop further up this stack, which takes it back before it returns.
    if let Some(again) = unsafe { around.as_ref() }
        && again.task == task
    {
        again.asked.set(true);
        return;
    }
    let again = Again { task, asked: Cell::new(true) };
    AGAIN.with(|innermost| innermost.set(&again));
    let _restore = Restore(around);
    while again.asked.replace(false) {
        // SAFETY: `asked` was set by a caller of this function that held the runnable and handed it over.
        unsafe { Runnable::new(task.cast()) }.run();
    }
}
