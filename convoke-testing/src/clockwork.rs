//! An executor and a clock that are both driven by hand.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use convoke_core::Executor;
use convoke_core::raw::{Runnable, Timers};
use convoke_core::testing::ByHand;

use super::clock::Clock;

/// An executor that runs its work when it is told to, with a clock that stands still until it is moved.
///
/// ```
/// use std::time::Duration;
/// use convoke::prelude::*;
/// use convoke::testing::{Clockwork, Connected};
/// use convoke::time::sleep;
///
/// let clockwork = Clockwork::new();
/// let sleeping = sleep(Duration::from_secs(60));
/// let running = Connected::with_env(sleeping, clockwork.clone().into()).start();
/// clockwork.advance(Duration::from_secs(59));
/// assert!(!running.is_complete());
/// clockwork.advance(Duration::from_secs(1));
/// assert_eq!(running.outcome(), Outcome::Value(()));
/// ```
#[derive(Clone)]
pub struct Clockwork(Arc<ClockworkState>);

struct ClockworkState {
    work: ByHand,
    clock: Clock,
}

impl Clockwork {
    /// Creates a clockwork whose clock shows the machine's time.
    pub fn new() -> Self {
        Self(Arc::new(ClockworkState { work: ByHand::new(), clock: Clock::new() }))
    }

    /// Returns the time on its clock.
    pub fn now(&self) -> Instant {
        self.0.clock.now()
    }

    /// Moves the clock by `duration`, stops at each timer on the way, and runs what is queued at each.
    /// Returns the number of pieces of work that were run. Call it from one thread at a time: if several
    /// threads move the clock, timers and work are called by any of them, out of order.
    pub fn advance(&self, duration: Duration) -> usize {
        let end = self.now() + duration;
        let mut ran = self.run_ready();
        while self.0.clock.jump(Some(end)) {
            ran += self.run_ready();
        }
        self.0.clock.move_to(end);
        ran
    }

    /// Runs what is queued, and what that queues. Returns the number of pieces of work.
    pub fn run_ready(&self) -> usize {
        core::iter::from_fn(|| self.0.work.run_one().then_some(())).count()
    }

    /// Closes the timers.
    pub fn close(&self) {
        self.0.clock.close();
    }
}

#[diagnostic::do_not_recommend]
impl Executor for Clockwork {
    fn post(&self, runnable: Runnable) {
        self.0.work.post(runnable);
    }

    fn timers(&self) -> Option<&dyn Timers> {
        Some(&self.0.clock)
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
        f.debug_struct("Clockwork").field("clock", &self.0.clock).finish_non_exhaustive()
    }
}
