//! Where a program runs that is explored: a run loop that is moved step by step, and a clock that jumps.

use core::ptr::NonNull;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use convoke_core::Executor;
use convoke_core::raw::{Home, Runnable, Timer, Timers};

use crate::run_loop::RunLoopExecutor;
use crate::time::queue::TimerQueue;

/// A run loop with another clock. The loop itself is moved by whoever has it.
#[derive(Clone)]
pub(super) struct Stage {
    run_loop: RunLoopExecutor,
    clock: Arc<Clock>,
}

struct Clock {
    queue: TimerQueue,
    now: Mutex<Instant>,
}

impl Stage {
    pub(super) fn new(run_loop: RunLoopExecutor) -> Self {
        let clock = Clock { queue: TimerQueue::new(), now: Mutex::new(Instant::now()) };
        Self { run_loop, clock: Arc::new(clock) }
    }

    /// Moves the clock to the next timer and calls it. False if there is none.
    pub(super) fn jump(&self) -> bool {
        let Some(at) = self.clock.queue.earliest() else { return false };
        // A time that had passed when the timer was armed does not move the clock back.
        let now = at.max(self.clock.now());
        *self.clock.now.lock().unwrap_or_else(PoisonError::into_inner) = now;
        self.clock.queue.call_due(now) > 0
    }
}

#[diagnostic::do_not_recommend]
impl Executor for Stage {
    fn post(&self, runnable: Runnable) {
        self.run_loop.post(runnable);
    }

    fn dispatch(&self, runnable: Runnable) -> Option<Runnable> {
        self.run_loop.dispatch(runnable)
    }

    fn home(&self) -> Option<&Home> {
        self.run_loop.home()
    }

    fn timers(&self) -> Option<&dyn Timers> {
        Some(&*self.clock)
    }
}

// SAFETY: the queue keeps the contract; whoever moves the clock has a handle meanwhile.
unsafe impl Timers for Clock {
    fn now(&self) -> Instant {
        *self.now.lock().unwrap_or_else(PoisonError::into_inner)
    }

    unsafe fn arm(&self, timer: NonNull<Timer>, at: Instant) {
        // Nobody sleeps, so nobody is woken.
        // SAFETY: the caller's.
        let _ = unsafe { self.queue.arm(timer, at) };
    }

    unsafe fn disarm(&self, timer: NonNull<Timer>) -> bool {
        // SAFETY: the caller's.
        unsafe { self.queue.disarm(timer) }
    }
}

impl PartialEq for Stage {
    fn eq(&self, other: &Self) -> bool {
        self.run_loop == other.run_loop
    }
}

impl fmt::Debug for Stage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stage").finish_non_exhaustive()
    }
}
