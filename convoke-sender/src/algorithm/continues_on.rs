//! `continues_on(&executor)`: moves the outcome to an executor.

use core::fmt;

use super::hop::{Destination, HopTarget, Hopped};
use crate::Completes;
use convoke_core::{Env, Executor, ExecutorRef};

/// Moves the outcome, of every kind, to an executor: what follows runs there.
///
/// - *Completes with* the outcome of the sender. If the executor drops the hop, a value becomes stopped; an
///   error or a panic is not lost. A stop that is requested after the work has ended has no effect.
/// - *If dropped* before it starts, the sender is dropped.
/// - *Runs on* the executors of the sender, then on the given one, always through its queue. If the executor
///   drops the hop, it completes on the thread that drops it.
///
/// ```
/// use convoke::executor::InlineExecutor;
/// use convoke::sender::prelude::*;
///
/// let sender = just(20).continues_on(&InlineExecutor).then(|v| v + 1);
/// assert_eq!(sync_wait(sender), Outcome::Value(21));
/// ```
pub type ContinuesOn<S, X> = Hopped<S, To<X>>;

/// The destination of `continues_on`: an executor, through its queue.
#[derive(Clone)]
pub struct To<X>(pub(crate) X);

impl<X: Executor> Destination for To<X> {
    type Executor = X;

    #[inline]
    fn target(self, _: &Env, _: Completes) -> HopTarget<X> {
        HopTarget::Post(self.0)
    }

    fn executor(&self, _: &Env) -> ExecutorRef {
        ExecutorRef::new(self.0.clone())
    }
}

impl<X> fmt::Debug for To<X> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "To({})", core::any::type_name::<X>())
    }
}

#[cfg(test)]
mod tests {
    use crate::prelude::*;
    use crate::testing::{ByHand, Connected, DropCount, Gate, all_outcomes, race_a_gate, stopped_env};
    use convoke_core::{Env, InlineExecutor};

    #[test]
    fn every_door_arrives_on_the_executor() {
        for (outcome, sender) in all_outcomes(1, "e") {
            let by_hand = ByHand::new();
            let running = Connected::new(sender.continues_on(&by_hand)).start();
            assert!(!running.is_complete());
            assert_eq!(by_hand.run_all(), 1);
            assert_eq!(running.outcome(), outcome);
        }
        for (outcome, sender) in all_outcomes(1, "e") {
            assert_eq!(Connected::new(sender.continues_on(&InlineExecutor)).outcome(), outcome);
        }
    }

    #[test]
    fn the_operation_before_it_is_gone_while_the_outcome_waits() {
        let by_hand = ByHand::new();
        let count = DropCount::new();
        let gate = Gate::<i32>::new();
        let sender = gate.holding(count.token()).continues_on(&by_hand);
        assert!(sender.completes_on(&Env::new()).unwrap().is(&by_hand));
        let running = Connected::new(sender).start();
        gate.complete(Outcome::Value(5));
        assert_eq!((count.dropped(), by_hand.len()), (1, 1));
        by_hand.run_all();
        assert_eq!(running.outcome(), Outcome::Value(5));
    }

    #[test]
    fn an_executor_that_drops_it_stops_a_value_and_loses_no_error_and_no_panic() {
        for (outcome, sender) in all_outcomes(1, "e") {
            let expected = if outcome.is_value() { Outcome::Stopped } else { outcome };
            let by_hand = ByHand::new();
            let running = Connected::new(sender.continues_on(&by_hand)).start();
            by_hand.drop_all();
            assert_eq!(running.outcome(), expected);
        }
    }

    #[test]
    fn a_value_that_is_given_up_is_dropped_before_the_receiver_completes() {
        let (by_hand, count) = (ByHand::new(), DropCount::new());
        let sender = just(count.token()).continues_on(&by_hand).then(|_| 9).upon_stopped(|| count.dropped());
        let outcome = Connected::new(sender).meanwhile(|_| {
            by_hand.drop_all();
        });
        assert_eq!(outcome, Outcome::Value(1));
    }

    #[test]
    fn a_stop_after_the_value_was_made_does_not_lose_it() {
        let by_hand = ByHand::new();
        let source = StopSource::new();
        let running = Connected::stoppable(just(1).continues_on(&by_hand), &source).start();
        source.request_stop(StopReason::Requested);
        by_hand.run_all();
        assert_eq!(running.outcome(), Outcome::Value(1));
    }

    #[test]
    fn a_stop_before_the_start_and_while_it_runs_reaches_the_sender_and_arrives_on_the_executor() {
        let by_hand = ByHand::new();
        let running = Connected::with_env(never::<i32>().continues_on(&by_hand), stopped_env()).start();
        assert!(!running.is_complete());
        by_hand.run_all();
        assert_eq!(running.outcome(), Outcome::Stopped);
        let source = StopSource::new();
        let running = Connected::stoppable(never::<i32>().continues_on(&by_hand), &source).start();
        assert_eq!(by_hand.len(), 0);
        source.request_stop(StopReason::Requested);
        assert!(!running.is_complete());
        by_hand.run_all();
        assert_eq!(running.outcome(), Outcome::Stopped);
    }

    #[test]
    fn dropping_it_unstarted_posts_nothing() {
        let by_hand = ByHand::new();
        let count = DropCount::new();
        drop(Connected::new(Gate::<i32>::new().holding(count.token()).continues_on(&by_hand)));
        assert_eq!((count.dropped(), by_hand.len()), (1, 0));
    }

    #[test]
    fn another_thread_completes_it_while_it_is_being_started() {
        race_a_gate(2000, |by_hand, gate| gate.sender().continues_on(by_hand));
    }
}
