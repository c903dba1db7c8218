//! The state of a strand: what is queued, and whose turn it is. No unsafe; model-checked.

use convoke_core::raw::sync::{Mutex, MutexGuard};
use convoke_core::raw::{RunQueue, Runnable};

/// The queue of a strand and the one bit that keeps it serial.
///
/// *Taken*: somebody has the turn: the strand's own runnable is queued on the inner executor, or runs. Only whoever has
/// the turn takes work out. The bit is clear only while nothing is queued.
///
/// The lock is held for a few instructions at a time, and never while work runs.
pub struct Turns {
    state: Mutex<State>,
}

struct State {
    queue: RunQueue,
    taken: bool,
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
        Self { state: Mutex::new(State { queue: RunQueue::new(), taken: false }) }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// Queues work.
    pub fn post(&self, runnable: Runnable) -> AfterPost {
        let mut state = self.state();
        state.queue.push(runnable);
        if core::mem::replace(&mut state.taken, true) { AfterPost::Queued } else { AfterPost::Schedule }
    }

    /// Takes all that is queued; if there is nothing, gives up the turn. Called by whoever has it.
    pub fn next(&self) -> Next {
        let mut state = self.state();
        if state.queue.is_empty() {
            state.taken = false;
            return Next::Idle;
        }
        Next::Work(core::mem::take(&mut state.queue))
    }

    /// Puts back what was taken and not run, before all that came later. The turn is kept: the caller posts the strand
    /// again.
    pub fn put_back(&self, mut rest: RunQueue) {
        let mut state = self.state();
        rest.append(&mut state.queue);
        state.queue = rest;
    }

    /// Whether nothing is queued.
    pub fn is_empty(&self) -> bool {
        self.state().queue.is_empty()
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
