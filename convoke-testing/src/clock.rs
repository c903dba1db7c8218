//! A clock that stands still until it is moved, and the timers that go by it: by hand in a clockwork, by jumps on a stage.

#![allow(unsafe_code)]

use core::ptr::NonNull;
use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use convoke_core::raw::{Timer, Timers};

use convoke_exec::raw::TimerQueue;

pub(super) struct Clock {
    queue: TimerQueue,
    now: Mutex<Instant>,
}

impl Clock {
    /// Shows some time.
    pub(super) fn new() -> Self {
        Self { queue: TimerQueue::new(), now: Mutex::new(Instant::now()) }
    }

    pub(super) fn has_timers(&self) -> bool {
        !self.queue.is_empty()
    }

    /// Moves to the next timer and calls it, if there is one that is due by then; or another thread, which moves the clock
    /// too, has called it.
    pub(super) fn jump(&self, by: Option<Instant>) -> bool {
        let earliest = self.queue.earliest().filter(|at| by.is_none_or(|by| *at <= by));
        let Some(at) = earliest else { return false };
        let now = self.move_to(at);
        self.queue.call_due(now);
        true
    }

    /// Moves on, over no timer: see [`jump`](Clock::jump). The clock does not go back: for a time that had passed when a timer
    /// was armed, or because another thread is ahead. Returns what it shows.
    pub(super) fn move_to(&self, at: Instant) -> Instant {
        let mut now = self.lock();
        *now = at.max(*now);
        *now
    }

    /// Ends the timers.
    pub(super) fn close(&self) {
        self.queue.close();
    }

    fn lock(&self) -> MutexGuard<'_, Instant> {
        self.now.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

// SAFETY: the queue keeps the contract; whoever moves the clock has it meanwhile.
unsafe impl Timers for Clock {
    fn now(&self) -> Instant {
        *self.lock()
    }

    unsafe fn arm(&self, timer: NonNull<Timer>, at: Instant) {
        // Nobody sleeps until its time, so nobody is woken.
        // SAFETY: the caller's.
        let _ = unsafe { self.queue.arm(timer, at) };
    }

    unsafe fn disarm(&self, timer: NonNull<Timer>) -> bool {
        // SAFETY: the caller's.
        unsafe { self.queue.disarm(timer) }
    }
}

impl fmt::Debug for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Clock").field("queue", &self.queue).finish_non_exhaustive()
    }
}
