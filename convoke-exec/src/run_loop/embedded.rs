//! A run loop without a thread of its own: a task of another runtime runs it, some pieces of work at a time, and
//! may go from thread to thread in between.
//!
//! It has no owner thread, so all its tasks are `Send`. It is the parts of a `RunLoop`, with the same protocol of
//! dozing: `doze` marks the inbox as asleep, and a post from outside then wakes the sleeper.

use core::any::Any;
use core::fmt;
use std::sync::Arc;
use std::time::Instant;

use convoke_core::raw::OutOfLine;
use convoke_core::{FrameAllocator, Panic};

use super::runner::{Moment, Runner};
use super::sleeper::{GuardedSleeper, Sleeper};
use super::{Attached, RunLoopExecutor};

/// A [`RunLoop`](crate::RunLoop) that another event loop runs, for example a task of another runtime. It never
/// sleeps, and it is `Send`: another thread may run it each time. Work that is not `Send` needs a `RunLoop`.
///
/// The other event loop calls, again and again: [`rouse`](EmbeddedLoop::rouse),
/// [`run_while`](EmbeddedLoop::run_while), [`doze`](EmbeddedLoop::doze), and, if that returns true,
/// [`next_timer`](EmbeddedLoop::next_timer). Then it leaves the loop alone until that time, or until
/// [`Sleeper::wake`] is called. Of the sleeper, it uses the clock and `wake`.
///
/// Dropping the loop stops all work that is queued and calls the timers with a stop. Work that is posted later
/// is stopped too.
///
/// ```
/// use std::sync::Arc;
/// use std::sync::atomic::{AtomicBool, Ordering};
/// use std::time::Instant;
/// use convoke::prelude::*;
/// use convoke::raw::{EmbeddedLoop, Moment, Sleeper};
///
/// /// Notes that the loop has work again. A real one wakes the event loop around it.
/// #[derive(Default)]
/// struct Woken(AtomicBool);
///
/// impl Sleeper for Woken {
///     fn sleep(&self, _: Option<Instant>) {}
///     fn check(&self) {}
///     fn wake(&self) {
///         self.0.store(true, Ordering::Release);
///     }
/// }
///
/// let woken = Arc::new(Woken::default());
/// let embedded = EmbeddedLoop::over(woken.clone(), None);
/// assert!(embedded.doze());
/// let launched = launch(&embedded.executor()).start(async { 7 });
/// assert!(woken.0.load(Ordering::Acquire));
///
/// embedded.rouse();
/// embedded.run_while(|moment| moment == Moment::Next);
/// assert_eq!(launched.wait(), Outcome::Value(7));
/// ```
pub struct EmbeddedLoop {
    executor: RunLoopExecutor,
    runner: OutOfLine<Runner>,
}

impl EmbeddedLoop {
    /// Creates a loop with an empty queue. Its clock is that of `sleeper`, and its executor returns `context`.
    pub fn over(sleeper: Arc<dyn Sleeper>, context: Option<Arc<dyn Any + Send + Sync>>) -> Self {
        let attached = Attached {
            sleeper: Some(GuardedSleeper::new(sleeper)),
            context,
            allocator: FrameAllocator::default(),
        };
        Self { executor: RunLoopExecutor::with(attached, None), runner: OutOfLine::new(Runner::new()) }
    }

    /// Returns the executor through which work is posted.
    pub fn executor(&self) -> RunLoopExecutor {
        self.executor.clone()
    }

    /// Runs work, and calls due timers, while there is work and `goes_on` returns true. It is called before
    /// each piece of work, and when there is none, with the [`Moment`].
    ///
    /// # Panics
    /// If a piece of work panics (senders and tasks do not: they catch panics). The rest stays queued.
    pub fn run_while(&self, mut goes_on: impl FnMut(Moment) -> bool) {
        self.runner
            .run_while(&self.executor.shared, None, |moment| goes_on(moment) && moment == Moment::Next);
    }

    /// Prepares the loop to be left alone: from now on a post wakes the sleeper. Returns false if there is
    /// work to run. Call [`rouse`](EmbeddedLoop::rouse) before anything else.
    #[must_use = "if this returns false there is work to run, and no post will wake the sleeper"]
    pub fn doze(&self) -> bool {
        self.runner.doze(&self.executor.shared)
    }

    /// Ends a [`doze`](EmbeddedLoop::doze).
    pub fn rouse(&self) {
        self.executor.shared.inbox.wake_up();
    }

    /// Returns true if there is no other handle of the loop, and it has neither work nor timers. Then nothing can
    /// be posted any more either.
    #[doc(hidden)]
    pub fn is_unused(&self) -> bool {
        self.runner.is_empty() && self.executor.is_unused() && self.executor.shared.timers.is_empty()
    }

    /// Returns the time of the earliest timer.
    pub fn next_timer(&self) -> Option<Instant> {
        self.executor.shared.earliest()
    }
}

impl Drop for EmbeddedLoop {
    fn drop(&mut self) {
        let cleared = Panic::catch(|| self.runner.clear());
        let closed = Panic::catch(|| self.executor.shared.refuse_all());
        // A second panic during unwinding would abort the process.
        if let Err(panic) = cleared.and(closed)
            && !std::thread::panicking()
        {
            panic.resume();
        }
    }
}

impl fmt::Debug for EmbeddedLoop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EmbeddedLoop").finish_non_exhaustive()
    }
}
