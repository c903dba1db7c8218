//! An executor whose clock stands still, for models that call its timers themselves. It runs posted work
//! inline, so a sleep ends, and its memory is freed, inside the call of its timer.

#![allow(dead_code, unreachable_pub, reason = "several models share it")]
#![allow(unsafe_code)]

use std::time::Instant;

use convoke_core::Executor;
use convoke_core::raw::sync::{Arc, thread};
use convoke_core::raw::{ArmedTimer, IdleTimer, Runnable, Timers};
use convoke_exec::raw::TimerQueue;

#[derive(Clone)]
pub struct StillClock(Arc<ClockState>);

struct ClockState {
    queue: TimerQueue,
    now: Instant,
}

impl StillClock {
    pub fn new() -> Self {
        Self(Arc::new(ClockState { queue: TimerQueue::new(), now: Instant::now() }))
    }

    /// Returns the time it shows.
    pub fn now(&self) -> Instant {
        self.0.now
    }

    /// Calls the timers that are due at `at`. Returns their number.
    pub fn call_due(&self, at: Instant) -> usize {
        self.0.queue.call_due(at)
    }

    /// Calls the timers that are due at `at` on another thread.
    pub fn time_comes(&self, at: Instant) -> thread::JoinHandle<usize> {
        let clock = self.clone();
        thread::spawn(move || clock.call_due(at))
    }
}

impl PartialEq for StillClock {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Executor for StillClock {
    fn post(&self, runnable: Runnable) {
        runnable.run();
    }

    fn timers(&self) -> Option<&dyn Timers> {
        Some(&*self.0)
    }
}

// SAFETY: `TimerQueue` keeps the contract of `Timers`: see its rules.
unsafe impl Timers for ClockState {
    fn now(&self) -> Instant {
        self.now
    }

    fn arm(&self, timer: IdleTimer, at: Instant) {
        let _ = self.queue.arm(timer, at);
    }

    fn disarm(&self, timer: ArmedTimer) -> bool {
        self.queue.disarm(timer)
    }
}
