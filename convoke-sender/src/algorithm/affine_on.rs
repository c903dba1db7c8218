//! `affine_on(&executor)`: completes on an executor, and hops only if it must.

use core::fmt;

use super::hop::{Destination, HopTarget, Hopped};
use crate::Completes;
use convoke_core::{Env, Executor, ExecutorRef};

/// Completes on an executor, with every kind of outcome, and hops only if it must: it does not if the type of
/// the sender says that it completes there, or if the executor hands the work back.
///
/// - *Completes with* the outcome of the sender. If the executor drops the hop, a value becomes stopped; an
///   error or a panic is not lost. A stop that is requested after the work has ended has no effect.
/// - *If dropped* before it starts, the sender is dropped.
/// - *Runs on* the executors of the sender, then on the given one. If the executor drops the hop, it
///   completes on the thread that drops it.
///
/// ```
/// use convoke::executor::InlineExecutor;
/// use convoke::sender::prelude::*;
///
/// assert_eq!(sync_wait(just(42).affine_on(&InlineExecutor)), Outcome::Value(42));
/// ```
pub type AffineOn<S, X> = Hopped<S, AffineTo<X>>;

/// The destination of `affine_on`: an executor that the work may be on already.
#[derive(Clone)]
pub struct AffineTo<X>(pub(crate) X);

impl<X: Executor> Destination for AffineTo<X> {
    type Executor = X;

    #[inline]
    fn target(self, env: &Env, completes: Completes) -> HopTarget<X> {
        if completes <= Completes::Here && env.executor().is(&self.0) {
            HopTarget::Stay
        } else {
            HopTarget::Dispatch(self.0)
        }
    }

    fn executor(&self, _: &Env) -> ExecutorRef {
        ExecutorRef::new(self.0.clone())
    }
}

impl<X> fmt::Debug for AffineTo<X> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "AffineTo({})", core::any::type_name::<X>())
    }
}

#[cfg(test)]
mod tests {
    use crate::prelude::*;
    use crate::testing::{ByHand, Connected, DropCount, Gate, all_outcomes, race_a_gate, stopped_env};
    use convoke_core::raw::Runnable;
    use convoke_core::{Env, InlineExecutor};

    #[test]
    fn every_door_of_a_sender_from_elsewhere_arrives_through_the_queue() {
        for (outcome, sender) in all_outcomes(1, "e") {
            let by_hand = ByHand::new();
            let running = Connected::new(sender.affine_on(&by_hand)).start();
            assert!(!running.is_complete(), "it was started inline, which is not the executor");
            assert_eq!(by_hand.run_all(), 1);
            assert_eq!(running.outcome(), outcome);
        }
    }

    #[test]
    fn every_door_of_an_inline_sender_that_is_started_there_stays() {
        for (outcome, sender) in all_outcomes(1, "e") {
            let by_hand = ByHand::new();
            let sender = sender.affine_on(&by_hand);
            assert!(sender.completes_on(&Env::new()).unwrap().is(&by_hand));
            let running = Connected::with_env(sender, Env::from(by_hand.clone())).start();
            assert_eq!(by_hand.len(), 0);
            assert_eq!(running.outcome(), outcome);
        }
    }

    #[test]
    fn a_sender_that_comes_back_here_by_itself_makes_no_second_hop() {
        let executor = ByHand::new();
        let sender = just(1).on(&InlineExecutor).affine_on(&executor);
        let running = Connected::with_env(sender, Env::from(executor.clone())).start();
        assert_eq!(executor.run_all(), 1);
        assert_eq!(running.outcome(), Outcome::Value(1));
    }

    #[test]
    fn a_sender_of_which_nothing_is_known_hops_even_if_it_was_started_there() {
        let executor = ByHand::new();
        let gate = Gate::<i32>::new();
        let running =
            Connected::with_env(gate.sender().affine_on(&executor), Env::from(executor.clone())).start();
        gate.complete(Outcome::Value(1));
        assert!(!running.is_complete());
        assert_eq!(executor.run_all(), 1);
        assert_eq!(running.outcome(), Outcome::Value(1));
    }

    #[test]
    fn an_erased_executor_is_recognised() {
        let executor = ExecutorRef::new(ByHand::new());
        let running = Connected::with_env(just(1).affine_on(&executor), Env::on(executor.clone())).start();
        assert_eq!(running.outcome(), Outcome::Value(1));
    }

    /// An executor that says that every caller is on it already, and that cannot queue.
    #[derive(Clone, PartialEq)]
    struct HandsBack;

    impl Executor for HandsBack {
        fn post(&self, _: Runnable) {
            unreachable!("nothing is posted");
        }

        fn dispatch(&self, runnable: Runnable) -> Option<Runnable> {
            Some(runnable)
        }
    }

    #[test]
    fn work_that_the_executor_hands_back_runs_right_there() {
        let gate = Gate::<i32>::new();
        let running = Connected::new(gate.sender().affine_on(&HandsBack)).start();
        gate.complete(Outcome::Value(3));
        assert_eq!(running.outcome(), Outcome::Value(3));
    }

    #[test]
    fn an_executor_that_drops_it_stops_a_value_and_loses_no_error_and_no_panic() {
        for (outcome, sender) in all_outcomes(1, "e") {
            let expected = if outcome.is_value() { Outcome::Stopped } else { outcome };
            let by_hand = ByHand::new();
            let running = Connected::new(sender.affine_on(&by_hand)).start();
            by_hand.drop_all();
            assert_eq!(running.outcome(), expected);
        }
    }

    #[test]
    fn a_stop_before_the_start_and_while_it_runs_reaches_the_sender_and_arrives_on_the_executor() {
        let by_hand = ByHand::new();
        let running = Connected::with_env(never::<i32>().affine_on(&by_hand), stopped_env()).start();
        assert!(!running.is_complete());
        by_hand.run_all();
        assert_eq!(running.outcome(), Outcome::Stopped);
        let source = StopSource::new();
        let running = Connected::stoppable(never::<i32>().affine_on(&by_hand), &source).start();
        source.request_stop(StopReason::Requested);
        assert!(!running.is_complete());
        by_hand.run_all();
        assert_eq!(running.outcome(), Outcome::Stopped);
    }

    #[test]
    fn dropping_it_unstarted_posts_nothing() {
        let by_hand = ByHand::new();
        let count = DropCount::new();
        drop(Connected::new(Gate::<i32>::new().holding(count.token()).affine_on(&by_hand)));
        assert_eq!((count.dropped(), by_hand.len()), (1, 0));
    }

    #[test]
    fn another_thread_completes_it_while_it_is_being_started() {
        race_a_gate(2000, |by_hand, gate| gate.sender().affine_on(by_hand));
    }
}
