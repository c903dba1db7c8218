//! The sleeper of a run loop: what its thread does instead of parking. An I/O driver is the sleeper of its
//! context's loop. A plain loop has none, and parks its thread.

use std::sync::Arc;
use std::time::Instant;

use super::runner::Runner;
use convoke_core::raw::{abort_with, budget, contain, report_panic};

/// Waits for events while a [`RunLoop`](crate::RunLoop) has nothing to run. It is safe to implement. None of
/// its functions may unwind: the loop may run above stack frames that queued work points into, so a panic
/// aborts the process. Only a panic of `wake` is contained and reported.
pub trait Sleeper: Send + Sync {
    /// Reads the clock of the loop's timers.
    fn now(&self) -> Instant {
        Instant::now()
    }

    /// Sleeps until [`wake`](Sleeper::wake) is called, until the clock reaches `until`, or until an event
    /// occurs. It then wakes the tasks that wait for the event, which posts work to the loop. It may return
    /// early without a reason. Called on the loop's thread.
    fn sleep(&self, until: Option<Instant>);

    /// Handles the events that have occurred, without sleeping. Called on the loop's thread, at regular
    /// intervals while there is work to run.
    fn check(&self);

    /// Ends the current sleep or, if there is none, the next one. Called on any thread.
    fn wake(&self);

    /// Returns true if the clock jumps to the time that `sleep` is given, as virtual time does. Then `sleep`
    /// is given the exact time of the earliest timer. Otherwise timers that are close together share a
    /// wake-up: the time is up to a quarter of a millisecond later if timers were called just before, and
    /// earlier if the exact time is not known; the loop then finds it out.
    fn jumps(&self) -> bool {
        false
    }

    /// Returns how many pieces of work run at most between two calls of [`check`](Sleeper::check); at least 1.
    fn runs_per_check(&self) -> u32 {
        RUNS_PER_CHECK
    }

    /// Returns which of `queued` pieces of work runs next. The loop asks after each check, so a sleeper that
    /// wants to choose every piece returns 1 from [`runs_per_check`](Sleeper::runs_per_check).
    fn choose(&self, queued: usize) -> usize {
        let _ = queued;
        0
    }
}

/// Calls a sleeper, and aborts the process where it would unwind. A loop calls its sleeper only through this:
/// from inside posts, and above stack frames that queued work points into.
pub(super) struct GuardedSleeper(Arc<dyn Sleeper>);

impl GuardedSleeper {
    pub(super) fn new(sleeper: Arc<dyn Sleeper>) -> Self {
        Self(sleeper)
    }

    pub(super) fn now(&self) -> Instant {
        without_unwinding(SLEEPER, || self.0.now())
    }

    pub(super) fn sleep(&self, until: Option<Instant>) {
        without_unwinding(SLEEPER, || self.0.sleep(until));
    }

    pub(super) fn check(&self) {
        without_unwinding(SLEEPER, || self.0.check());
    }

    /// Contains a panic: posters call this, and their work is queued by then. If the sleeper has not woken
    /// the loop, the next post tries again.
    pub(super) fn wake(&self) {
        contain(report_panic, || self.0.wake());
    }

    pub(super) fn jumps(&self) -> bool {
        without_unwinding(SLEEPER, || self.0.jumps())
    }

    pub(super) fn runs_per_check(&self) -> u32 {
        without_unwinding(SLEEPER, || self.0.runs_per_check())
    }

    pub(super) fn choose(&self, queued: usize) -> usize {
        without_unwinding(SLEEPER, || self.0.choose(queued))
    }
}

const SLEEPER: &str = "the `Sleeper` of a run loop";

/// Calls `call`. If it unwinds, aborts the process with a message that names `what`.
#[inline]
pub(super) fn without_unwinding<R>(what: &str, call: impl FnOnce() -> R) -> R {
    struct AbortOnDrop<'a>(&'a str);

    impl Drop for AbortOnDrop<'_> {
        fn drop(&mut self) {
            abort_with(&format_args!("{} panicked, which aborts the process", self.0));
        }
    }

    let abort = AbortOnDrop(what);
    let result = call();
    core::mem::forget(abort);
    result
}

/// Counts a call on a source that has completed. After [`CALLS_PER_CHECK`] of them the loop that runs the
/// caller, if any, checks inbox, timers and sleeper before its next run.
#[inline]
pub fn count_call() {
    Runner::count_call();
}

/// Number of calls on sources, of all tasks together, after which a loop lets its sleeper handle events. The
/// budget of a task does not bound them: a task that lets others run begins a new one. A task that sends to a
/// reader on the same loop must not fill the buffers of the kernel before the reader learns of it.
pub const CALLS_PER_CHECK: u32 = budget::PER_POLL;

/// Number of runs after which a loop takes its inbox and lets its sleeper handle events. So work that posts
/// itself again does not starve the rest.
pub const RUNS_PER_CHECK: u32 = 61;
