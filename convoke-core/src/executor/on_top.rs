//! Work that runs on top of the work that starts it. A task that awaits a task, which awaits a task, would use
//! a part of the stack for each. So a thread runs work a few levels deep on its stack, and what comes deeper
//! goes through a queue: depth costs heap, not stack.
//!
//! There is no model of this file: all its state is thread-local, and a runnable that it defers stays on its
//! thread. Threads meet in the executors that the work is posted to, which have models.

use core::cell::Cell;
use core::mem::ManuallyDrop;

use super::{RunQueue, Runnable};
use crate::Panic;
use crate::sync::thread_local;
use crate::this_thread::ThisThread;

/// The number of pieces of work that run on top of each other. More than one, so that almost all work runs
/// without a queue.
const MAX_DEPTH: u32 = 32;

/// Decrements the depth, also if the work panics.
struct Deeper;

impl Drop for Deeper {
    fn drop(&mut self) {
        ThisThread::with(|thread| thread.on_top.set(thread.on_top.get() - 1));
    }
}

impl Runnable {
    /// Runs the work on top of the caller's stack, for a caller that got it back from
    /// [`dispatch`](super::Executor::dispatch). Returns it if many pieces of work already run on top of each
    /// other here: the caller posts it.
    ///
    /// # Panics
    /// If the work does.
    #[must_use = "post the work if it was returned"]
    pub fn run_on_top(self) -> Option<Self> {
        let depth = ThisThread::with(|thread| thread.on_top.get());
        if depth >= MAX_DEPTH {
            return Some(self);
        }
        ThisThread::with(|thread| thread.on_top.set(depth + 1));
        let _deeper = Deeper;
        self.run();
        None
    }
}

thread_local! {
    /// The posts to the inline executor that run on top of each other on this thread, and the work that came
    /// deeper. The outermost post runs it before it returns.
    static INLINE: Inline =
        Inline { depth: Cell::new(0), deferred: Cell::new(ManuallyDrop::new(RunQueue::new())) };
}

struct Inline {
    depth: Cell<u32>,
    /// Taken out to be changed: no code runs meanwhile. Empty outside of all posts, and so never dropped: a
    /// thread-local with a destructor could not be used by the destructors of others.
    deferred: Cell<ManuallyDrop<RunQueue>>,
}

const _: () =
    assert!(!core::mem::needs_drop::<Inline>(), "other thread-locals may post when they are dropped");

impl Inline {
    fn change<R>(change: impl FnOnce(&mut RunQueue) -> R) -> R {
        INLINE.with(|inline| {
            let mut deferred = inline.deferred.take();
            let changed = change(&mut deferred);
            inline.deferred.set(deferred);
            changed
        })
    }
}

/// Restores the depth, also if the work panics.
struct InlineDeeper(u32);

impl Drop for InlineDeeper {
    fn drop(&mut self) {
        INLINE.with(|inline| inline.depth.set(self.0));
    }
}

/// Runs work that is posted to the inline executor, on top of the caller's stack; or before the outermost post
/// on this thread returns, if it is too deep.
pub(super) fn run_inline(runnable: Runnable) {
    let depth = INLINE.with(|inline| inline.depth.get());
    if depth >= MAX_DEPTH {
        return Inline::change(|deferred| deferred.push(runnable));
    }
    INLINE.with(|inline| inline.depth.set(depth + 1));
    let deeper = InlineDeeper(depth);
    if depth > 0 {
        return runnable.run();
    }
    let first = Panic::catch(|| runnable.run()).err();
    let first = first.or(run_deferred().1);
    drop(deeper);
    if let Some(panic) = first {
        panic.resume();
    }
}

/// Runs the work that was too deep. For code that is about to block the thread, and may wait for just that
/// work. Returns true if there was any, and the first panic.
pub(super) fn run_deferred() -> (bool, Option<Panic>) {
    let (mut any, mut first) = (false, None);
    while let Some(runnable) = Inline::change(RunQueue::pop) {
        any = true;
        let depth = INLINE.with(|inline| inline.depth.replace(1));
        let _deeper = InlineDeeper(depth);
        if let Err(panic) = Panic::catch(|| runnable.run()) {
            first.get_or_insert(panic);
        }
    }
    (any, first)
}
