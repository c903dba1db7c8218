//! An executor whose clock stands still, for models that call its timers themselves. It runs posted work
//! inline, so a sleep ends, and its memory is freed, inside the call of its timer.

#![allow(dead_code, unreachable_pub, reason = "several models share it")]
#![allow(unsafe_code)]

use std::ptr::NonNull;
use std::time::Instant;

use convoke_core::Executor;
use convoke_core::raw::sync::{Arc, thread};
use convoke_core::raw::{Runnable, Timer, Timers};
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

// SAFETY: `TimerQueue` upholds the contract of `Timers`.
unsafe impl Timers for ClockState {
    fn now(&self) -> Instant {
        self.now
    }

    unsafe fn arm(&self, timer: NonNull<Timer>, at: Instant) {
        // SAFETY: the contract of `arm`, which the caller upholds, is that of `TimerQueue::arm`.
        let _ = unsafe { self.queue.arm(timer, at) };
    }

    unsafe fn disarm(&self, timer: NonNull<Timer>) -> bool {
        // SAFETY: the contract of `disarm`, which the caller upholds, is that of `TimerQueue::disarm`.
        unsafe { self.queue.disarm(timer) }
    }
}
