//! How the thread of a run loop sleeps, and what it looks after besides: an I/O driver is the sleeper of its context's
//! loop. A plain loop has none, and parks its thread.

use std::sync::Arc;
use std::time::Instant;

use super::runner::Runner;
use convoke_core::raw::{contain, report_panic};

/// What a [`RunLoop`](crate::RunLoop) leans on when it has nothing to run. Safe to implement. None of its functions unwinds: if one
/// does, the process ends, for the loop may run below somebody's stack that must stay. A panic of `wake` is reported.
pub trait Sleeper: Send + Sync {
    /// What the clock of the loop's timers says.
    fn now(&self) -> Instant {
        Instant::now()
    }

    /// Sleeps until [`wake`](Sleeper::wake) is called, until the clock says `until`, or until something has happened that it
    /// looks after: it tells those who wait for that, which posts work to the loop. May return for no reason. Called on the
    /// loop's thread, as is `look`.
    fn sleep(&self, until: Option<Instant>);

    /// The same without sleeping. Called every so often while there is work to be run.
    fn look(&self);

    /// Ends the sleep that is going on, or, if there is none, the next one. From any thread.
    fn wake(&self);

    /// Whether the clock jumps to the time that it is told to sleep until, as virtual time does. Then it is told the exact time of
    /// the next timer. Otherwise timers that are close together share a wake-up: it is told a time up to a quarter of a millisecond
    /// later if some were called just now, and earlier if the exact one is not known, which the loop then finds out.
    fn jumps(&self) -> bool {
        false
    }

    /// How many pieces of work are run between two looks at the most; at least 1.
    fn look_each(&self) -> u32 {
        LOOK_EACH
    }

    /// Which of so many queued pieces of work is run next. Asked when the loop looks: so a sleeper that wants to choose each
    /// one has it look each time.
    fn choose(&self, queued: usize) -> usize {
        let _ = queued;
        0
    }
}

/// A sleeper that ends the process where it would unwind: the only way in which a loop calls one. It is called from inside of
/// posts and below stacks that queued work points into.
pub(super) struct Guarded(Arc<dyn Sleeper>);

impl Guarded {
    pub(super) fn new(sleeper: Arc<dyn Sleeper>) -> Self {
        Self(sleeper)
    }

    pub(super) fn now(&self) -> Instant {
        without_unwinding(SLEEPER, || self.0.now())
    }

    pub(super) fn sleep(&self, until: Option<Instant>) {
        without_unwinding(SLEEPER, || self.0.sleep(until));
    }

    pub(super) fn look(&self) {
        without_unwinding(SLEEPER, || self.0.look());
    }

    /// Contained: it is called by whoever posts, and the work is queued by then. A sleeper that has not woken the loop is woken with
    /// the next piece of work.
    pub(super) fn wake(&self) {
        contain(report_panic, || self.0.wake());
    }

    pub(super) fn jumps(&self) -> bool {
        without_unwinding(SLEEPER, || self.0.jumps())
    }

    pub(super) fn look_each(&self) -> u32 {
        without_unwinding(SLEEPER, || self.0.look_each())
    }

    pub(super) fn choose(&self, queued: usize) -> usize {
        without_unwinding(SLEEPER, || self.0.choose(queued))
    }
}

const SLEEPER: &str = "what a run loop sleeps by";

/// Calls `call`, and ends the process, naming `what`, if that unwinds.
#[inline]
pub(super) fn without_unwinding<R>(what: &str, call: impl FnOnce() -> R) -> R {
    struct Ends<'a>(&'a str);

    impl Drop for Ends<'_> {
        fn drop(&mut self) {
            eprintln!("convoke: {} has panicked, so the process ends", self.0);
            std::process::abort();
        }
    }

    let ends = Ends(what);
    let result = call();
    core::mem::forget(ends);
    result
}

/// Has the loop that runs the caller, if there is one, look before it runs the next piece of work: for work that was long for one piece,
/// and lets others run, who may have to hear first that they can.
pub fn look_next() {
    Runner::look_next();
}

/// After so many runs a loop looks into its inbox, and has its sleeper look, so that work which posts itself again does not
/// starve the rest.
pub const LOOK_EACH: u32 = 61;
