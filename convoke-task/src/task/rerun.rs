//! Running a task once more that was woken while it ran, where the executor has no queue and would run it on top of us: deeper
//! and deeper. Whoever is the first to do so runs it again, as often as it takes.

#![allow(unsafe_code)]

use core::cell::Cell;
use core::ptr::{self, NonNull};

use convoke_core::raw::Runnable;
use convoke_core::raw::sync::thread_local;

use super::header::TaskHeader;

/// One who runs a task again, on the stack.
struct Again {
    task: NonNull<TaskHeader>,
    /// Whether it has to be run once more.
    asked: Cell<bool>,
}

thread_local! {
    /// The innermost, or null.
    static AGAIN: Cell<*const Again> = Cell::new(ptr::null());
}

/// Puts back who was there before, also when the task's executor panics.
struct Entered(*const Again);

impl Drop for Entered {
    fn drop(&mut self) {
        AGAIN.with(|again| again.set(self.0));
    }
}

/// Runs the task again, now or when who runs it again already comes back.
///
/// # Safety
/// The caller was inside, the task is queued, and its runnable is the caller's, who does not touch the task afterwards.
#[cold]
#[inline(never)]
pub(super) unsafe fn run_again(task: NonNull<TaskHeader>) {
    let around = AGAIN.with(Cell::get);
    // SAFETY: whoever put it there is further up on this stack, and takes it back.
    if let Some(again) = unsafe { around.as_ref() }
        && again.task == task
    {
        again.asked.set(true);
        return;
    }
    let again = Again { task, asked: Cell::new(true) };
    AGAIN.with(|innermost| innermost.set(&again));
    let _entered = Entered(around);
    while again.asked.replace(false) {
        // SAFETY: the caller's, or of who has asked: it is ours to run.
        unsafe { Runnable::new(task.cast()) }.run();
    }
}
