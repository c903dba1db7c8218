//! The state of a view that limits: what waits, and which of its seats are free. No unsafe; model-checked.

use convoke_core::raw::{RunQueue, Runnable};

use convoke_core::raw::SpinLock;

/// The queue of a view, and its seats: as many as it may run at a time.
///
/// 1. A seat is *taken* while it is queued on the inner executor, or runs. Only who has one takes work out, one piece at a
///    time, so that nobody sits before work which another seat could run.
/// 2. It is given up only when nothing waits, under the lock: so whatever waits has a seat that will come to it.
/// 3. Work is taken in the order in which it was queued.
///
/// The lock is held for a few instructions and never while anything runs. Who has a seat sees what was done in it before.
pub struct Seats {
    state: SpinLock<State>,
}

struct State {
    waiting: RunQueue,
    /// There is room for all: nothing is allocated later.
    free: Vec<Seat>,
}

/// Leave to run one piece of work after another. There are as many as the view has been made with.
#[must_use = "a seat that is lost is never taken again"]
#[derive(Debug, PartialEq, Eq)]
pub struct Seat(u16);

/// What the poster must now do.
#[must_use]
#[derive(Debug, PartialEq, Eq)]
pub enum AfterQueuing {
    /// A seat was free and is the poster's: it posts it to the inner executor.
    Post(Seat),
    /// Nothing: all seats are taken, and one of them will come to it.
    Wait,
}

/// What whoever has a seat must now do.
#[must_use]
#[derive(Debug)]
pub enum Turn {
    /// Run this, and come back.
    Run(Runnable, Seat),
    /// Nothing: the seat is free again.
    Free,
}

impl Seat {
    /// Which one it is, from none on.
    pub fn index(&self) -> usize {
        self.0.into()
    }
}

impl Seats {
    /// Nothing waits, and all seats are free.
    pub fn new(seats: u16) -> Self {
        let free = (0..seats).rev().map(Seat).collect();
        Self { state: SpinLock::new(State { waiting: RunQueue::new(), free }) }
    }

    /// Queues work.
    pub fn queue(&self, runnable: Runnable) -> AfterQueuing {
        let mut state = self.state.lock();
        state.waiting.push(runnable);
        match state.free.pop() {
            Some(seat) => AfterQueuing::Post(seat),
            None => AfterQueuing::Wait,
        }
    }

    /// Takes the first piece that waits; if there is none, gives up the seat.
    pub fn next(&self, seat: Seat) -> Turn {
        let mut state = self.state.lock();
        match state.waiting.pop() {
            Some(runnable) => Turn::Run(runnable, seat),
            None => {
                state.free.push(seat);
                Turn::Free
            }
        }
    }

    /// Whether nothing waits.
    pub fn is_empty(&self) -> bool {
        self.state.lock().waiting.is_empty()
    }
}

impl core::fmt::Debug for Seats {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Seats").finish_non_exhaustive()
    }
}
