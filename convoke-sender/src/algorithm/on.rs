//! `on(&executor)`: runs work on an executor and returns to the current one.

use super::hop::{Destination, HopTarget, Hopped};
use super::starts_on::StartsOn;
use crate::Completes;
use convoke_core::{Env, ExecutorRef};

/// Runs the work on an executor and returns, with the outcome, to the executor of the environment it was
/// started in.
///
/// - *Completes with* the outcome of the sender; stopped if a stop was requested before it starts there, or
///   if the executor drops it. If the executor to return to drops the hop, a value becomes stopped; an error
///   or a panic is not lost.
/// - *If dropped* before it starts, the sender is dropped.
/// - *Runs on* the given executor, through its queue; completes on that of the surrounding environment,
///   through its queue unless the thread is on it already.
///
/// ```
/// use convoke::executor::InlineExecutor;
/// use convoke::sender::prelude::*;
///
/// let sender = just_from(|| 6 * 7).on(&InlineExecutor);
/// assert_eq!(sync_wait(sender), Outcome::Value(42));
/// ```
pub type OnSender<X, S> = Hopped<StartsOn<X, S>, ReturnHop>;

/// The destination of `on`: the executor of the surrounding environment.
#[derive(Clone, Copy, Debug)]
pub struct ReturnHop;

impl Destination for ReturnHop {
    type Executor = ExecutorRef;
    const BACK: bool = true;

    #[inline]
    fn target(self, env: &Env, _: Completes) -> HopTarget<ExecutorRef> {
        HopTarget::Dispatch(env.executor().clone())
    }

    fn executor(&self, env: &Env) -> ExecutorRef {
        env.executor().clone()
    }
}

#[cfg(test)]
mod tests {
    use crate::prelude::*;
    use crate::testing::{ByHand, Connected, DropCount, Gate, all_outcomes, race_a_gate, stopped_env};
    use convoke_core::Env;
    use convoke_core::env::Changes;

    #[test]
    fn every_door_comes_back() {
        for (outcome, sender) in all_outcomes(1, "e") {
            let (back, there) = (ByHand::new(), ByHand::new());
            let running = Connected::with_env(sender.on(&there), Env::from(back.clone())).start();
            assert_eq!((back.len(), there.len()), (0, 1));
            there.run_all();
            assert!(!running.is_complete());
            assert_eq!((back.len(), there.len()), (1, 0));
            back.run_all();
            assert_eq!(running.outcome(), outcome);
        }
    }

    #[test]
    fn the_sender_is_told_where_it_is_and_what_follows_where_that_is() {
        let (back, there) = (ByHand::new(), ByHand::new());
        let sender = read_env(|env| env.executor().is(&there)).on(&there);
        let env = Env::from(back.clone());
        assert!(sender.completes_on(&env).unwrap().is(&back));
        let follows = sender
            .let_value(|there| read_env(|env| env.executor().is(&back)).then(move |back| (there, back)));
        let outcome = Connected::with_env(follows, env).meanwhile(|_| {
            there.run_all();
            back.run_all();
        });
        assert_eq!(outcome, Outcome::Value((true, true)));
    }

    #[test]
    fn a_stop_before_it_arrives_leaves_the_sender_unstarted_and_comes_back() {
        let (back, there) = (ByHand::new(), ByHand::new());
        let sender = just_from(|| -> i32 { unreachable!() }).on(&there);
        let env = stopped_env().with(Changes::new().executor(back.clone()));
        let running = Connected::with_env(sender, env).start();
        there.run_all();
        assert!(!running.is_complete());
        back.run_all();
        assert_eq!(running.outcome(), Outcome::Stopped);
    }

    #[test]
    fn a_stop_while_it_runs_reaches_the_sender() {
        let there = ByHand::new();
        let source = StopSource::new();
        let running = Connected::stoppable(never::<i32>().on(&there), &source).start();
        there.run_all();
        assert!(!running.is_complete());
        source.request_stop(StopReason::Requested);
        assert_eq!(running.outcome(), Outcome::Stopped);
    }

    #[test]
    fn an_executor_that_drops_it_on_either_way_stops_it_and_loses_no_error() {
        for (outcome, sender) in all_outcomes(1, "e") {
            let (back, there) = (ByHand::new(), ByHand::new());
            let running = Connected::with_env(sender.on(&there), Env::from(back.clone())).start();
            there.run_all();
            back.drop_all();
            let expected = if outcome.is_value() { Outcome::Stopped } else { outcome };
            assert_eq!(running.outcome(), expected);
        }
        let there = ByHand::new();
        let running = Connected::new(just(1).on(&there)).start();
        there.drop_all();
        assert_eq!(running.outcome(), Outcome::Stopped);
    }

    #[test]
    fn dropping_it_unstarted_posts_nothing() {
        let by_hand = ByHand::new();
        let count = DropCount::new();
        drop(Connected::new(Gate::<i32>::new().holding(count.token()).on(&by_hand)));
        assert_eq!((count.dropped(), by_hand.len()), (1, 0));
    }

    #[test]
    fn another_thread_completes_it_while_it_is_being_started() {
        race_a_gate(2000, |by_hand, gate| gate.sender().on(by_hand));
    }
}
