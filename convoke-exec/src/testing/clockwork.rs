//! An executor and a clock that are both moved by hand: waiting work without waiting.

use core::ptr::NonNull;
use std::fmt;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use convoke_core::Executor;
use convoke_core::raw::{Runnable, Timer, Timers};
use convoke_core::testing::ByHand;

use crate::time::queue::TimerQueue;

/// Runs its work when it is told to, and its clock stands still until it is told to move.
///
/// ```
/// use std::time::Duration;
/// use convoke::prelude::*;
/// use convoke::testing::{Clockwork, Connected};
/// use convoke::time::sleep;
///
/// let clockwork = Clockwork::new();
/// let running = Connected::with_env(sleep(Duration::from_secs(60)), clockwork.clone().into()).start();
/// clockwork.advance(Duration::from_secs(59));
/// assert!(!running.is_complete());
/// clockwork.advance(Duration::from_secs(1));
/// assert_eq!(running.outcome(), Outcome::Value(()));
/// ```
#[derive(Clone)]
pub struct Clockwork(Arc<Works>);

struct Works {
    work: ByHand,
    queue: TimerQueue,
    now: Mutex<Instant>,
}

impl Clockwork {
    /// A clock that shows some time.
    pub fn new() -> Self {
        let works = Works { work: ByHand::new(), queue: TimerQueue::new(), now: Mutex::new(Instant::now()) };
        Self(Arc::new(works))
    }

    /// What the clock shows.
    pub fn now(&self) -> Instant {
        self.0.now()
    }

    /// Moves the clock by this much, with a stop at each timer on the way, and runs what is queued at each. Says how much
    /// it has run. By one thread at a time.
    pub fn advance(&self, duration: Duration) -> usize {
        let end = self.now() + duration;
        let mut ran = self.run_ready();
        while let Some(at) = self.0.queue.earliest().filter(|at| *at <= end) {
            // A time that had passed when the timer was armed does not move the clock back.
            let now = at.max(self.now());
            *self.0.now.lock().unwrap() = now;
            self.0.queue.call_due(now);
            ran += self.run_ready();
        }
        *self.0.now.lock().unwrap() = end;
        ran
    }

    /// Runs what is queued, and what that queues. Says how much that was.
    pub fn run_ready(&self) -> usize {
        core::iter::from_fn(|| self.0.work.run_one().then_some(())).count()
    }

    /// Ends the timers.
    pub fn close(&self) {
        self.0.queue.close();
    }
}

#[diagnostic::do_not_recommend]
impl Executor for Clockwork {
    fn post(&self, runnable: Runnable) {
        self.0.work.post(runnable);
    }

    fn timers(&self) -> Option<&dyn Timers> {
        Some(&*self.0)
    }
}

// SAFETY: the queue keeps the contract; whoever advances the clock holds a handle meanwhile.
unsafe impl Timers for Works {
    fn now(&self) -> Instant {
        *self.now.lock().unwrap()
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

impl PartialEq for Clockwork {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Default for Clockwork {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Clockwork {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Clockwork").field("queue", &self.0.queue).finish_non_exhaustive()
    }
}
