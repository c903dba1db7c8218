//! The state of a strand: what is queued, and whose turn it is. No unsafe; model-checked.

use convoke_core::raw::sync::Mutex;
use convoke_core::raw::sync::atomic::{AtomicBool, Ordering};
use convoke_core::raw::{RunQueue, Runnable};

use crate::inbox::{Inbox, Pushed};

/// The queue of a strand and the turn that keeps it serial.
///
/// The turn is *taken* while the strand's own runnable is queued on the inner executor, or runs; only whoever has it takes
/// work out. It is free only while nothing is queued. Posting is one exchange on one word and waits for nobody.
///
/// 1. The inbox says whose turn it is: its taker is asleep while the turn is free.
/// 2. `rest` is what was taken and not run in the last turn. It belongs to whoever has the turn, so its lock is never
///    waited for; `has_rest` saves taking it.
pub struct Turns {
    inbox: Inbox,
    rest: Mutex<RunQueue>,
    has_rest: AtomicBool,
}

/// What the poster must now do.
#[must_use]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AfterPost {
    /// The turn was free and is the poster's: it posts the strand to the inner executor.
    Schedule,
    /// Nothing: whoever has the turn will come to it.
    Queued,
}

/// What whoever has the turn must now do.
#[must_use]
#[derive(Debug)]
pub enum Next {
    /// Run these.
    Work(RunQueue),
    /// Nothing: the turn is free again.
    Idle,
}

impl Turns {
    /// Nothing queued, nobody's turn.
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

    /// Takes all that is queued; if there is nothing, gives up the turn. Called by whoever has it.
    pub fn next(&self) -> Next {
        // Relaxed: written by whoever had the turn before us, and the turn was passed on to us.
        if self.has_rest.load(Ordering::Relaxed) {
            self.has_rest.store(false, Ordering::Relaxed);
            return Next::Work(core::mem::take(&mut *self.lock_rest()));
        }
        loop {
            let taken = self.inbox.take();
            if !taken.is_empty() {
                return Next::Work(taken);
            }
            if self.inbox.fall_asleep() {
                return Next::Idle;
            }
        }
    }

    /// Puts back what was taken and not run: it comes before all that came later. The turn is kept: the caller posts the
    /// strand again.
    pub fn put_back(&self, rest: RunQueue) {
        if !rest.is_empty() {
            let before = core::mem::replace(&mut *self.lock_rest(), rest);
            self.has_rest.store(true, Ordering::Relaxed);
            // Empty, unless somebody puts back twice: what is stopped then is the program's, and not under the lock.
            drop(before);
        }
    }

    /// Whether nothing is queued.
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
