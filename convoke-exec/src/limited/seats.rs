//! The queue of a [`Limited`](super::Limited) view, and its seats. No unsafe code; model-checked.

use convoke_core::raw::{RunQueue, Runnable};

use convoke_core::raw::SpinLock;

/// The queue of a view, and as many seats as it may run pieces of work at a time.
///
/// 1. A seat is *taken* while it is queued on the inner executor, or runs. Only the holder of a seat takes
///    work, one piece at a time, so that it does not hold back work that another seat could run.
/// 2. A seat is freed only when no work is queued, under the lock. So queued work always has a seat that will
///    come to it.
/// 3. Work is taken in the order in which it was queued.
///
/// The lock is held for a few instructions and never while work runs. It passes a seat on, so a holder sees
/// what the holder before it did.
pub struct Seats {
    state: SpinLock<SeatState>,
}

struct SeatState {
    waiting: RunQueue,
    /// Has capacity for all seats, so that nothing is allocated later.
    free: Vec<Seat>,
}

/// The right to take and run work of the view, one piece after another. A view has a fixed number of seats.
#[must_use = "a lost seat is never free again"]
#[derive(Debug, PartialEq, Eq)]
pub struct Seat(u16);

/// Tells the poster what it must do now.
#[must_use]
#[derive(Debug, PartialEq, Eq)]
pub enum AfterQueuing {
    /// Post this seat to the inner executor: it was free, and now belongs to the poster.
    Post(Seat),
    /// Nothing: all seats are taken, and one of them will take the work.
    Wait,
}

/// Tells the holder of a seat what it must do now.
#[must_use]
#[derive(Debug)]
pub enum NextRun {
    /// Run this, and call `next` again.
    Run(Runnable, Seat),
    /// Nothing: the seat is free again.
    Free,
}

impl Seat {
    /// Returns the number of the seat, counted from 0.
    pub fn index(&self) -> usize {
        self.0.into()
    }
}

impl Seats {
    /// Creates an empty queue with this number of free seats.
    pub fn new(seats: u16) -> Self {
        let free = (0..seats).rev().map(Seat).collect();
        Self { state: SpinLock::new(SeatState { waiting: RunQueue::new(), free }) }
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

    /// Takes the first piece of queued work. If there is none, frees the seat.
    pub fn next(&self, seat: Seat) -> NextRun {
        let mut state = self.state.lock();
        match state.waiting.pop() {
            Some(runnable) => NextRun::Run(runnable, seat),
            None => {
                state.free.push(seat);
                NextRun::Free
            }
        }
    }

    /// Returns true if no work is queued.
    pub fn is_empty(&self) -> bool {
        self.state.lock().waiting.is_empty()
    }
}

impl core::fmt::Debug for Seats {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Seats").finish_non_exhaustive()
    }
}
