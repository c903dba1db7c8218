//! `schedule(&executor)`: completes on an executor.

#![allow(unsafe_code)]

use core::cell::Cell;
use core::fmt;
use core::marker::PhantomPinned;
use core::pin::Pin;
use core::ptr::NonNull;

use crate::operation::{Posted, Resume};
use crate::{Completes, OutcomeOf, Receiver, Sender};
use convoke_core::raw::{Call, Operation, post_contained};
use convoke_core::{Env, Executor, ExecutorRef, Never, Outcome};

/// The sender interface of executors. Every executor has it.
pub trait Scheduler: Executor {
    /// Returns a sender that completes on this executor: see [`schedule()`].
    #[inline]
    fn schedule(&self) -> Schedule<Self> {
        Schedule::new(self.clone())
    }
}

impl<X: Executor> Scheduler for X {}

/// Makes a sender that completes on `executor`. [`Scheduler::schedule`] is the same as a method.
///
/// - *Completes with* `()`; stopped if a stop was requested before it runs, or if the executor drops it.
/// - *If dropped* before it starts, nothing happens.
/// - *Runs on* the executor, always through its queue. If the executor drops it, it completes on the thread
///   that drops it.
///
/// ```
/// use convoke::sender::prelude::*;
/// use convoke::executor::RunLoop;
///
/// let run_loop = RunLoop::new();
/// let hello = schedule(&run_loop.executor()).then(|()| "from the loop");
/// # drop(hello);
/// ```
pub fn schedule<X: Executor>(executor: &X) -> Schedule<X> {
    Schedule::new(executor.clone())
}

/// The sender of [`schedule()`].
#[derive(Clone)]
#[must_use = "a sender does nothing until it is started"]
pub struct Schedule<X> {
    executor: X,
}

impl<X> Schedule<X> {
    pub(crate) fn new(executor: X) -> Self {
        Self { executor }
    }
}

impl<X> fmt::Debug for Schedule<X> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Schedule({})", core::any::type_name::<X>())
    }
}

// SAFETY: rules 1 and 2 of `Sender`: the only runnable completes the receiver, last. Rule 3: `Anywhere`
// claims nothing.
#[diagnostic::do_not_recommend]
unsafe impl<X: Executor> Sender for Schedule<X> {
    type Value = ();
    type Error = Never;
    const COMPLETES: Completes = Completes::Anywhere;
    type Operation<R: Receiver<(), Never>> = ScheduleOperation<X, R>;

    #[inline]
    fn connect<R: Receiver<(), Never>>(self, receiver: R) -> ScheduleOperation<X, R> {
        ScheduleOperation {
            posted: Posted::holding(Arrived(receiver)),
            executor: Cell::new(Some(self.executor)),
            _pinned: PhantomPinned,
        }
    }

    #[inline]
    fn as_yield(&self, env: &Env) -> Option<OutcomeOf<Self>> {
        env.executor().is(&self.executor).then_some(Outcome::Value(()))
    }

    fn completes_on(&self, _: &Env) -> Option<ExecutorRef> {
        Some(ExecutorRef::new(self.executor.clone()))
    }
}

/// The operation of [`schedule()`]: it contains the unit of work that the executor queues.
///
/// 1. `start` is the only user until it posts, then the holder of the runnable is.
pub struct ScheduleOperation<X, R> {
    posted: Posted<Arrived<R>>,
    executor: Cell<Option<X>>,
    _pinned: PhantomPinned,
}

/// The receiver, while it waits in the queue of the executor.
#[derive(Debug)]
struct Arrived<R>(R);

impl<R: Receiver<(), Never>> Resume for Arrived<R> {
    #[inline]
    fn resume(self, call: Call) {
        let stopped = call == Call::Stop || self.0.env().stop().stop_requested();
        self.0.complete(if stopped { Outcome::Stopped } else { Outcome::Value(()) });
    }
}

impl<X: Executor, R: Receiver<(), Never>> Operation for ScheduleOperation<X, R> {
    #[inline]
    unsafe fn start(self: Pin<&mut Self>) {
        let this = self.as_ref().get_ref();
        let posted = NonNull::from(&this.posted);
        // The executor may run the operation, and so free it, while `post_contained` still runs: the handle
        // is moved out first.
        let Some(executor) = this.executor.take() else { return };
        // SAFETY: rule 1: `start` is called once, and makes the only runnable. The operation is pinned until
        // its receiver is completed, which the runnable does.
        let runnable = unsafe { Posted::queue(posted) };
        post_contained(executor, runnable);
    }
}

impl<X, R> fmt::Debug for ScheduleOperation<X, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ScheduleOperation").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use crate::prelude::*;
    use crate::testing::{ByHand, Connected, stopped_env};

    #[test]
    fn completes_when_the_executor_runs_it_and_not_before() {
        let by_hand = ByHand::new();
        let running = Connected::new(schedule(&by_hand)).start();
        assert!(!running.is_complete());
        assert_eq!(by_hand.run_all(), 1);
        assert_eq!(running.outcome(), Outcome::Value(()));
    }

    #[test]
    fn a_stop_before_it_runs_is_honoured_on_the_executor() {
        let by_hand = ByHand::new();
        let running = Connected::with_env(schedule(&by_hand), stopped_env()).start();
        assert!(!running.is_complete());
        by_hand.run_all();
        assert_eq!(running.outcome(), Outcome::Stopped);
        let source = StopSource::new();
        let running = Connected::stoppable(schedule(&by_hand), &source).start();
        source.request_stop(StopReason::Requested);
        by_hand.run_all();
        assert_eq!(running.outcome(), Outcome::Stopped);
    }

    #[test]
    fn an_executor_that_drops_it_stops_it() {
        let by_hand = ByHand::new();
        let running = Connected::new(schedule(&by_hand)).start();
        by_hand.drop_all();
        assert_eq!(running.outcome(), Outcome::Stopped);
    }

    #[test]
    fn dropping_it_unstarted_posts_nothing() {
        let by_hand = ByHand::new();
        drop(Connected::new(schedule(&by_hand)));
        assert_eq!(by_hand.run_all(), 0);
    }
}
