//! `starts_on(&executor, sender)`: starts the work on an executor.

use core::fmt;

use super::continuation::{Continuation, Sequenced, Step};
use super::schedule::{Schedule, schedule};
use super::write_env::WriteEnv;
use crate::Sender;
use convoke_core::env::Changes;
use convoke_core::{Env, Executor, ExecutorRef, FrameAllocator, Never, Outcome};

/// Makes a sender that goes to `executor` and starts the work there, in an environment with that executor.
/// [`Sender::starts_on`] is the same as a method.
///
/// - *Completes with* the outcome of the sender; stopped if a stop was requested before it starts there, or
///   if the executor drops it. The sender is not started then.
/// - *If dropped* before it starts, the sender is dropped.
/// - *Runs on* the executor, through its queue, then on the executors of the sender.
///
/// ```
/// use convoke::executor::InlineExecutor;
/// use convoke::sender::prelude::*;
///
/// let is_there = read_env(|env| env.executor().is(&InlineExecutor));
/// let there = starts_on(&InlineExecutor, is_there);
/// assert_eq!(sync_wait(there), Outcome::Value(true));
/// ```
pub fn starts_on<X: Executor, S: Sender>(executor: &X, sender: S) -> StartsOn<X, S> {
    Sequenced::new(schedule(executor), OnArrival { executor: executor.clone(), sender })
}

/// The sender of [`starts_on()`].
pub type StartsOn<X, S> = Sequenced<Schedule<X>, OnArrival<X, S>>;

/// The continuation of `starts_on`: on the executor.
#[derive(Clone)]
pub struct OnArrival<X, S> {
    executor: X,
    sender: S,
}

impl<X: Executor, S: Sender> Continuation<(), Never> for OnArrival<X, S> {
    type Next = WriteEnv<S>;

    #[inline]
    fn step(self, outcome: Outcome<()>) -> Step<WriteEnv<S>> {
        Step::from_value(outcome.map_error(Never::absurd), |()| {
            self.sender.write_env(Changes::new().executor(self.executor))
        })
    }

    fn completes_on(&self, env: &Env) -> Option<ExecutorRef> {
        self.sender.completes_on(&env.with(Changes::new().executor(self.executor.clone())))
    }

    fn allocator(&self) -> Option<&FrameAllocator> {
        self.sender.allocator()
    }
}

impl<X, S: fmt::Debug> fmt::Debug for OnArrival<X, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OnArrival")
            .field("executor", &core::any::type_name::<X>())
            .field("sender", &self.sender)
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use crate::prelude::*;
    use crate::testing::{ByHand, Connected, DropCount, Gate, all_outcomes, race_a_gate, stopped_env};
    use convoke_core::Env;

    #[test]
    fn runs_the_sender_on_the_executor_and_lets_every_door_pass() {
        for (outcome, sender) in all_outcomes(1, "e") {
            let by_hand = ByHand::new();
            let running = Connected::new(starts_on(&by_hand, sender)).start();
            assert!(!running.is_complete());
            assert_eq!(by_hand.run_all(), 1);
            assert_eq!(running.outcome(), outcome);
        }
    }

    #[test]
    fn the_environment_of_the_sender_says_where_it_is() {
        let by_hand = ByHand::new();
        let sender = read_env(|env| env.executor().is(&by_hand)).starts_on(&by_hand);
        assert!(sender.completes_on(&Env::new()).unwrap().is(&by_hand));
        let outcome = Connected::new(sender).meanwhile(|_| {
            by_hand.run_all();
        });
        assert_eq!(outcome, Outcome::Value(true));
    }

    #[test]
    fn a_stop_before_it_arrives_leaves_the_sender_unstarted() {
        let by_hand = ByHand::new();
        let sender = starts_on(&by_hand, just_from(|| -> i32 { unreachable!() }));
        let running = Connected::with_env(sender, stopped_env()).start();
        by_hand.run_all();
        assert_eq!(running.outcome(), Outcome::Stopped);
        let running = Connected::new(starts_on(&by_hand, just_from(|| -> i32 { unreachable!() }))).start();
        by_hand.drop_all();
        assert_eq!(running.outcome(), Outcome::Stopped);
    }

    #[test]
    fn a_stop_while_it_runs_reaches_the_sender() {
        let by_hand = ByHand::new();
        let source = StopSource::new();
        let running = Connected::stoppable(never::<i32>().starts_on(&by_hand), &source).start();
        by_hand.run_all();
        assert!(!running.is_complete());
        source.request_stop(StopReason::Requested);
        assert_eq!(running.outcome(), Outcome::Stopped);
    }

    #[test]
    fn dropping_it_unstarted_posts_nothing() {
        let by_hand = ByHand::new();
        let count = DropCount::new();
        drop(Connected::new(starts_on(&by_hand, Gate::<i32>::new().holding(count.token()))));
        assert_eq!((count.dropped(), by_hand.len()), (1, 0));
    }

    #[test]
    fn another_thread_completes_it_while_it_is_being_started() {
        race_a_gate(2000, |by_hand, gate| gate.sender().starts_on(by_hand));
    }
}
