//! Stops work that no executor will run. Work that is stopped often wakes the work that waits for it, which
//! is refused in turn: a chain of tasks would recurse once for each. So a thread stops work a few levels
//! deep, and defers what comes deeper until it is back at the outermost level.

#![allow(unsafe_code)]

use core::cell::Cell;
use core::ptr;

use super::on_top::run_deferred;
use super::{RunQueue, Runnable};
use crate::Panic;
use crate::sync::UnsafeCell;
use crate::sync::thread_local;

/// The number of levels that work is stopped deep at once. More than one, so that almost all work is stopped
/// before the code that posts it goes on.
const MAX_DEPTH: usize = 32;

/// The outermost call of [`Runnable::stop`] on this thread, on its stack.
///
/// 1. Only its thread reaches it, through `OUTERMOST`, and only while the call runs.
/// 2. `deferred` is accessed by `push` and `pop` alone, which call no foreign code.
struct Outermost {
    depth: Cell<usize>,
    deferred: UnsafeCell<RunQueue>,
}

thread_local! {
    /// The outermost call on this thread, or null. Set by `Restore`, which also resets it.
    static OUTERMOST: Cell<*const Outermost> = Cell::new(ptr::null());
}

impl Outermost {
    fn push(&self, runnable: Runnable) {
        // SAFETY: rules 1 and 2: no other thread is here, and `push` calls no code that could come back here.
        unsafe { &mut *self.deferred.get() }.push(runnable);
    }

    fn pop(&self) -> Option<Runnable> {
        // SAFETY: rules 1 and 2: no other thread is here, and `pop` calls no code that could come back here.
        unsafe { &mut *self.deferred.get() }.pop()
    }
}

/// Restores the pointer of before, also if the call panics.
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

/// Decrements the depth, also if the call panics.
struct Deeper<'a>(&'a Cell<usize>);

impl Drop for Deeper<'_> {
    fn drop(&mut self) {
        self.0.set(self.0.get() - 1);
    }
}

impl Runnable {
    /// Completes the work as stopped, as dropping it does, with bounded recursion where the completion of one
    /// piece of work leads to the next. For executors that refuse work.
    ///
    /// The work has completed when this returns, unless the caller is itself inside of many such calls. Then
    /// it has completed before the outermost of them returns, or before this thread
    /// [blocks](Runnable::stop_deferred).
    ///
    /// # Panics
    /// If the completion does. The outermost call panics after it has stopped all deferred work.
    pub fn stop(self) {
        let outermost = OUTERMOST.with(Cell::get);
        // SAFETY: rule 1: the `Restore` that set it is further up on this stack, and resets it before the
        // value is gone.
        match unsafe { outermost.as_ref() } {
            None => stop_outermost(self),
            Some(outermost) if outermost.depth.get() >= MAX_DEPTH => outermost.push(self),
            Some(outermost) => {
                outermost.depth.set(outermost.depth.get() + 1);
                let _deeper = Deeper(&outermost.depth);
                drop(self);
            }
        }
    }

    /// Stops the work that [`stop`](Runnable::stop) has deferred on this thread, and runs the work that the inline
    /// executor has deferred. For code that is about to
    /// block the thread, and may wait for just that work. Returns true if there was any.
    pub fn stop_deferred() -> bool {
        // The panic hook has reported a panic of the work. The code that blocks is not involved in it.
        let (ran, _) = run_deferred();
        let outermost = OUTERMOST.with(Cell::get);
        // SAFETY: rule 1: the `Restore` that set it is further up on this stack, and resets it before the
        // value is gone.
        let Some(outermost) = (unsafe { outermost.as_ref() }) else { return ran };
        let mut any = ran;
        while let Some(runnable) = outermost.pop() {
            any = true;
            let _own = Restore::set(ptr::null());
            // The panic hook has reported a panic of the completion. The code that blocks is not involved in
            // it.
            let _ = Panic::catch(|| stop_outermost(runnable));
        }
        any
    }
}

/// Stops a piece of work, and all work that is deferred meanwhile.
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
    /// Stops all work in the queue, in order. The first panic is resumed when all work was stopped.
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

/// Resumes the panic, unless this thread unwinds already: a second panic would abort the process.
fn resume(panic: Option<Panic>) {
    if let Some(panic) = panic
        && !std::thread::panicking()
    {
        panic.resume();
    }
}
