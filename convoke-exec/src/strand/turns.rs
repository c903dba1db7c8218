//! The queue of a [`Strand`](super::Strand), and its turn. No unsafe code; model-checked.

use convoke_core::raw::sync::Mutex;
use convoke_core::raw::sync::atomic::{AtomicBool, Ordering};
use convoke_core::raw::{RunQueue, Runnable};

use crate::inbox::{Inbox, Pushed};

/// The queue of a strand, and the turn that keeps it serial.
///
/// The turn is *taken* while the strand's own runnable is queued on the inner executor, or runs. Only the
/// thread that has it takes work. It is free only while nothing is queued. Posting is one exchange on one
/// word and never waits.
///
/// 1. The inbox records the turn: its taker is asleep while the turn is free.
/// 2. `rest` is work that was taken and not run in the last turn. Only the thread that has the turn touches
///    it, so its lock is never contended. `has_rest` saves taking the lock.
pub struct Turns {
    inbox: Inbox,
    rest: Mutex<RunQueue>,
    has_rest: AtomicBool,
}

/// Tells the poster what it must do now.
#[must_use]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AfterPost {
    /// Post the strand to the inner executor: the turn was free, and now belongs to the poster.
    Schedule,
    /// Nothing: the thread that has the turn will take the work.
    Queued,
}

/// Tells the thread that has the turn what it must do now.
#[must_use]
#[derive(Debug)]
pub enum NextBatch {
    /// Run these, and call `next` again.
    Work(RunQueue),
    /// Nothing: the turn is free again.
    Idle,
}

impl Turns {
    /// Creates an empty queue whose turn is free.
    pub fn new() -> Self {
        Self { inbox: Inbox::asleep(), rest: Mutex::new(RunQueue::new()), has_rest: AtomicBool::new(false) }
    }

    /// Queues work.
    pub fn post(&self, runnable: Runnable) -> AfterPost {
        match self.inbox.push(runnable) {
            Pushed::WakeSleeper => AfterPost::Schedule,
            Pushed::Queued => AfterPost::Queued,
            Pushed::Closed(_) => unreachable!("the inbox of a strand is never closed"),
        }
    }

    /// Takes all queued work. If there is none, frees the turn. Only the thread that has the turn may call
    /// it.
    pub fn next(&self) -> NextBatch {
        // Relaxed: written in an earlier turn, and passing on the turn orders it before this.
        if self.has_rest.load(Ordering::Relaxed) {
            self.has_rest.store(false, Ordering::Relaxed);
            return NextBatch::Work(core::mem::take(&mut *self.lock_rest()));
        }
        loop {
            let taken = self.inbox.take();
            if !taken.is_empty() {
                return NextBatch::Work(taken);
            }
            if self.inbox.fall_asleep() {
                return NextBatch::Idle;
            }
        }
    }

    /// Puts back work that was taken and not run, before all work that was posted later. The caller keeps the
    /// turn, and must post the strand again.
    pub fn put_back(&self, rest: RunQueue) {
        if !rest.is_empty() {
            let before = core::mem::replace(&mut *self.lock_rest(), rest);
            self.has_rest.store(true, Ordering::Relaxed);
            // Empty, unless a caller puts back twice. Dropping work runs user code, so it happens without
            // the lock.
            drop(before);
        }
    }

    /// Returns true if nothing is queued.
    pub fn is_empty(&self) -> bool {
        self.inbox.is_empty() && !self.has_rest.load(Ordering::Relaxed)
    }

    fn lock_rest(&self) -> convoke_core::raw::sync::MutexGuard<'_, RunQueue> {
        self.rest.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

impl Default for Turns {
    fn default() -> Self {
        Self::new()
    }
}

impl core::fmt::Debug for Turns {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Turns").finish_non_exhaustive()
    }
}
