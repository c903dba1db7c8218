//! A clock that stands still until it is moved, and its timers. `Clockwork` moves it by hand, `Stage` by
//! jumps.

#![allow(unsafe_code)]

use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use convoke_core::raw::{ArmedTimer, IdleTimer, Timers};

use convoke_exec::raw::TimerQueue;

pub(super) struct Clock {
    queue: TimerQueue,
    now: Mutex<Instant>,
}

impl Clock {
    /// Creates a clock that shows the machine's time.
    pub(super) fn new() -> Self {
        Self { queue: TimerQueue::new(), now: Mutex::new(Instant::now()) }
    }

    pub(super) fn has_timers(&self) -> bool {
        !self.queue.is_empty()
    }

    /// Moves to the next timer that is due until `by`, and fires it. Returns false if there is none. Several
    /// threads may move the clock: another one may have fired the timer first.
    pub(super) fn jump(&self, by: Option<Instant>) -> bool {
        let earliest = self.queue.earliest().filter(|at| by.is_none_or(|by| *at <= by));
        let Some(at) = earliest else { return false };
        let now = self.move_to(at);
        self.queue.call_due(now);
        true
    }

    /// Moves the clock forward without firing timers, and returns its time. It never moves back: a timer may
    /// be armed for a time in the past, and another thread may be ahead.
    pub(super) fn move_to(&self, at: Instant) -> Instant {
        let mut now = self.lock();
        *now = at.max(*now);
        *now
    }

    /// Closes the timers.
    pub(super) fn close(&self) {
        self.queue.close();
    }

    fn lock(&self) -> MutexGuard<'_, Instant> {
        self.now.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

// SAFETY: `TimerQueue` upholds the contract of `Timers`: it calls an armed timer at most once, and `disarm`
// removes it under the queue's lock. `jump` calls `call_due` through `&self`, so the queue is alive
// meanwhile.
unsafe impl Timers for Clock {
    fn now(&self) -> Instant {
        *self.lock()
    }

    fn arm(&self, timer: IdleTimer, at: Instant) {
        // The returned flag says that a sleeping thread must be woken earlier; no thread sleeps on this
        // clock.
        let _ = self.queue.arm(timer, at);
    }

    fn disarm(&self, timer: ArmedTimer) -> bool {
        self.queue.disarm(timer)
    }
}

impl fmt::Debug for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Clock").field("queue", &self.queue).finish_non_exhaustive()
    }
}
