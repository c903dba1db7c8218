//! Running a task again that was woken while it ran, on an executor without a queue. Such an executor would
//! run it on top of the current run, deeper and deeper. Instead the outermost run of the task repeats it in a
//! loop.

#![allow(unsafe_code)]

use core::cell::Cell;
use core::ptr;

use convoke_core::raw::sync::thread_local;

use super::queued::Queued;

/// A loop on this stack that runs a task again.
struct Again {
    /// The address of the task. It is compared only: the task may be gone.
    task: usize,
    /// The runnable of the task, if it has to run once more.
    queued: Cell<Option<Queued>>,
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
#[cold]
#[inline(never)]
pub(super) fn run_again(queued: Queued) {
    let around = AGAIN.with(Cell::get);
    let mut queued = Some(queued);
    // SAFETY: the pointer is to a loop further up this stack, which takes it back before it returns.
    if let Some(again) = unsafe { around.as_ref() }
        && queued.as_ref().is_some_and(|queued| queued.task().addr().get() == again.task)
    {
        again.queued.set(queued);
        return;
    }
    let task = queued.as_ref().map_or(0, |queued| queued.task().addr().get());
    let again = Again { task, queued: Cell::new(None) };
    AGAIN.with(|innermost| innermost.set(&again));
    let _restore = Restore(around);
    while let Some(now) = queued {
        now.into_runnable().run();
        queued = again.queued.take();
    }
}
