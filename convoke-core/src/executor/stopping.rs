//! Stops work that no executor will run. Work that is stopped often wakes the work that waits for it, which
//! is refused in turn: a chain of tasks would recurse once for each. So a thread stops work a few levels
//! deep, and defers what comes deeper until it is back at the outermost level.

use core::cell::Cell;

use super::on_top::run_deferred;
use super::{LocalRunQueue, RunQueue, Runnable};
use crate::Panic;
use crate::scoped_ref::ScopedRef;
use crate::sync::thread_local;

/// The maximum depth of nested stops on one stack. It is more than one, so that most work is stopped before the code that
/// posted it goes on.
const MAX_DEPTH: usize = 32;

/// The outermost call of [`Runnable::stop`] on this thread, on its stack.
struct Outermost {
    depth: Cell<usize>,
    deferred: LocalRunQueue,
}

thread_local! {
    static OUTERMOST: ScopedRef<Outermost> = ScopedRef::new();
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
        OUTERMOST.with(|current| {
            current.with(|outermost| match outermost {
                None => stop_outermost(self),
                Some(outermost) if outermost.depth.get() >= MAX_DEPTH => outermost.deferred.push(self),
                Some(outermost) => {
                    outermost.depth.set(outermost.depth.get() + 1);
                    let _deeper = Deeper(&outermost.depth);
                    drop(self);
                }
            });
        });
    }

    /// Stops the work that [`stop`](Runnable::stop) has deferred on this thread, and runs the work that the inline
    /// executor has deferred. For code that is about to
    /// block the thread, and may wait for just that work. Returns true if there was any.
    pub fn stop_deferred() -> bool {
        // The panic hook has reported a panic of the work. The code that blocks is not involved in it.
        let (ran, _) = run_deferred();
        OUTERMOST.with(|current| {
            current.with(|outermost| {
                let Some(outermost) = outermost else { return ran };
                let mut any = ran;
                while let Some(runnable) = outermost.deferred.pop() {
                    any = true;
                    // The panic hook has reported a panic of the completion. The code that blocks is not
                    // involved in it.
                    let _ = current.within(None, || Panic::catch(|| stop_outermost(runnable)));
                }
                any
            })
        })
    }
}

/// Stops a piece of work, and all work that is deferred meanwhile.
#[cold]
fn stop_outermost(runnable: Runnable) {
    let outermost = Outermost { depth: Cell::new(1), deferred: LocalRunQueue::new() };
    let mut first_panic = None;
    OUTERMOST.with(|current| {
        current.within(Some(&outermost), || {
            let mut next = Some(runnable);
            while let Some(runnable) = next {
                if let Err(panic) = Panic::catch(|| drop(runnable)) {
                    first_panic.get_or_insert(panic);
                }
                next = outermost.deferred.pop();
            }
        });
    });
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
