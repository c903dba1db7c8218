//! The side of a run loop that runs: used by `RunLoop`, and by `sync_wait` on a loop that is lent to it.

use core::cell::{Cell, RefCell};
use core::ptr;

use convoke_core::Panic;
use convoke_core::raw::sync::atomic::Ordering;
use convoke_core::raw::sync::{thread, thread_local};
use convoke_core::raw::{RunQueue, Runnable};

use super::Shared;

/// What was taken from the inbox and not run yet. Not shared: one thread runs a loop.
pub(crate) struct Runner {
    taken: RefCell<RunQueue>,
}

thread_local! {
    /// The loop that this thread is running, if any. Compared by address, never followed.
    static RUNNING: Cell<*const Shared> = Cell::new(ptr::null());
}

impl Runner {
    pub(crate) fn new() -> Self {
        Self { taken: RefCell::new(RunQueue::new()) }
    }

    /// Whether this thread runs that loop now.
    pub(super) fn is_running(shared: &Shared) -> bool {
        RUNNING.with(|running| ptr::eq(running.get(), shared))
    }

    /// Runs until the loop was told to finish and is empty.
    pub(super) fn run(&self, shared: &Shared) {
        let _entered = Entered::new(shared);
        loop {
            while let Some(runnable) = self.next(shared) {
                runnable.run();
            }
            if shared.finished.load(Ordering::Acquire) {
                return;
            }
            sleep(shared);
        }
    }

    pub(super) fn run_one(&self, shared: &Shared) -> bool {
        let _entered = Entered::new(shared);
        self.next(shared).map(Runnable::run).is_some()
    }

    /// Runs until `done` says so; it is asked after each piece of work. A panic of a piece of work is kept, for the
    /// caller must not be unwound, and the first is returned.
    pub(crate) fn run_until(&self, shared: &Shared, done: impl Fn() -> bool) -> Option<Panic> {
        let _entered = Entered::new(shared);
        let mut first_panic = None;
        while !done() {
            match self.next(shared) {
                Some(runnable) => {
                    if let Err(panic) = Panic::catch(|| runnable.run()) {
                        first_panic.get_or_insert(panic);
                    }
                }
                None => sleep(shared),
            }
        }
        first_panic
    }

    /// Stops what was taken and not run.
    pub(super) fn clear(&self) {
        drop(self.taken.take());
    }

    fn next(&self, shared: &Shared) -> Option<Runnable> {
        let mut taken = self.taken.borrow_mut();
        if taken.is_empty() {
            *taken = shared.inbox.take();
        }
        taken.pop()
    }
}

/// Sleeps until something was posted.
fn sleep(shared: &Shared) {
    if !shared.inbox.fall_asleep() {
        return;
    }
    while shared.inbox.is_asleep() {
        thread::park();
    }
}

/// Marks this thread as the one that runs the loop, until it is dropped.
struct Entered {
    before: *const Shared,
}

impl Entered {
    fn new(shared: &Shared) -> Self {
        *shared.lock_runner() = Some(thread::current());
        Self { before: RUNNING.with(|running| running.replace(shared)) }
    }
}

impl Drop for Entered {
    fn drop(&mut self) {
        RUNNING.with(|running| running.set(self.before));
    }
}
