//! Stopping work that no executor will run. What is stopped often wakes what waits for it, which is refused in turn: a chain of
//! tasks would take a piece of the stack for each. So a thread stops work a few levels deep, and what comes deeper than that
//! waits until it is back at the outermost level.

#![allow(unsafe_code)]

use core::cell::Cell;
use core::ptr;

use super::{RunQueue, Runnable};
use crate::Panic;
use crate::sync::UnsafeCell;
use crate::sync::thread_local;

/// How many levels deep work is stopped where it is refused. More than one, so that almost all work is stopped before whoever
/// posts it goes on.
const DEEPEST: usize = 32;

/// The outermost call of [`Runnable::stop`] on this thread, on its stack.
struct Outermost {
    depth: Cell<usize>,
    /// Used by `push` and `pop` alone, which call nobody.
    deferred: UnsafeCell<RunQueue>,
}

thread_local! {
    /// That of this thread, or null. Whoever sets it takes it back.
    static OUTERMOST: Cell<*const Outermost> = Cell::new(ptr::null());
}

impl Outermost {
    fn push(&self, runnable: Runnable) {
        // SAFETY: we are not shared between threads, and pushing calls nobody: this is the only reference.
        unsafe { &mut *self.deferred.get() }.push(runnable);
    }

    fn pop(&self) -> Option<Runnable> {
        // SAFETY: we are not shared between threads, and taking out calls nobody: this is the only reference.
        unsafe { &mut *self.deferred.get() }.pop()
    }
}

/// Puts back what was there, also when what is called panics.
struct Restore(*const Outermost);

impl Restore {
    fn set(outermost: *const Outermost) -> Self {
        Self(OUTERMOST.with(|current| current.replace(outermost)))
    }
}

impl Drop for Restore {
    fn drop(&mut self) {
        OUTERMOST.with(|current| current.set(self.0));
    }
}

/// One level less, also when what is called panics.
struct Deeper<'a>(&'a Cell<usize>);

impl Drop for Deeper<'_> {
    fn drop(&mut self) {
        self.0.set(self.0.get() - 1);
    }
}

impl Runnable {
    /// Completes the work as stopped, as dropping it does, without going deeper and deeper where the completion of one piece of
    /// work leads to the next: for executors that refuse work. It is done when this returns, unless the caller is itself
    /// inside of many such calls: then before the outermost of them returns, or before this thread
    /// [blocks](Runnable::stop_deferred).
    ///
    /// # Panics
    /// If the completion does; in the outermost call, after all that was deferred has been stopped.
    pub fn stop(self) {
        let outermost = OUTERMOST.with(Cell::get);
        // SAFETY: whoever put it there is further up on this stack, and takes it back.
        match unsafe { outermost.as_ref() } {
            None => stop_outermost(self),
            Some(outermost) if outermost.depth.get() >= DEEPEST => outermost.push(self),
            Some(outermost) => {
                outermost.depth.set(outermost.depth.get() + 1);
                let _deeper = Deeper(&outermost.depth);
                drop(self);
            }
        }
    }

    /// Stops what [`stop`](Runnable::stop) has put off on this thread: for whoever is about to block it, and may wait for just
    /// that. Returns whether there was anything.
    pub fn stop_deferred() -> bool {
        let outermost = OUTERMOST.with(Cell::get);
        // SAFETY: whoever put it there is further up on this stack, and takes it back.
        let Some(outermost) = (unsafe { outermost.as_ref() }) else { return false };
        let mut any = false;
        while let Some(runnable) = outermost.pop() {
            any = true;
            let _own = Restore::set(ptr::null());
            // What the completion throws has been reported by the panic hook; whoever blocks has nothing to do with it.
            let _ = Panic::catch(|| stop_outermost(runnable));
        }
        any
    }
}

/// Stops a piece of work, and whatever is deferred meanwhile.
#[cold]
fn stop_outermost(runnable: Runnable) {
    let outermost = Outermost { depth: Cell::new(1), deferred: UnsafeCell::new(RunQueue::new()) };
    let mut first_panic = None;
    {
        let _restore = Restore::set(&outermost);
        let mut next = Some(runnable);
        while let Some(runnable) = next {
            if let Err(panic) = Panic::catch(|| drop(runnable)) {
                first_panic.get_or_insert(panic);
            }
            next = outermost.pop();
        }
    }
    resume(first_panic);
}

impl RunQueue {
    /// Stops all that is in it, in order. A panic goes on when all were stopped.
    pub(super) fn stop_all(&mut self) {
        let mut first_panic = None;
        while let Some(runnable) = self.pop() {
            if let Err(panic) = Panic::catch(|| runnable.stop()) {
                first_panic.get_or_insert(panic);
            }
        }
        resume(first_panic);
    }
}

/// Inside of a panic a second one would end the process.
fn resume(panic: Option<Panic>) {
    if let Some(panic) = panic
        && !std::thread::panicking()
    {
        panic.resume();
    }
}
