//! `let_value(f)`: continues with another sender, made from the value.

use super::continuation::{Continuation, Sequenced, Step};
use crate::Sender;
use convoke_core::Outcome;

/// Calls a function with the value and continues with the sender that it returns.
///
/// The first operation is destroyed before the function runs. The two senders must have the same error type:
/// if one of them cannot fail, call `may_fail()` on it.
///
/// - *Completes with* the outcome of the second sender; error and stopped of the first pass through. If `f`
///   panics: panicked.
/// - *If dropped* before it starts, `f` is dropped uncalled.
/// - *Runs on* the thread on which the first sender completes, for `f`, then on the executors of the second. The
///   environment of the second has the executor on which the first completed, where that is known: after
///   `schedule(&pool)`, a `task` runs on that pool.
///
/// ```
/// use convoke::sender::prelude::*;
///
/// let sender = just(20).let_value(|v| just(v + 1).then(|v| v * 2));
/// assert_eq!(sync_wait(sender), Outcome::Value(42));
/// ```
pub type LetValue<S, F> = Sequenced<S, ValueContinuation<F>>;

/// The continuation of `let_value`: from a value.
#[derive(Clone, Debug)]
pub struct ValueContinuation<F>(pub(crate) F);

impl<V, E, F, N> Continuation<V, E> for ValueContinuation<F>
where
    F: FnOnce(V) -> N + Send,
    N: Sender<Error = E>,
{
    type Next = N;
    const FOLLOWS_EXECUTOR: bool = true;

    #[inline]
    fn step(self, outcome: Outcome<V, E>) -> Step<N> {
        Step::from_value(outcome, self.0)
    }
}

#[cfg(test)]
mod tests {
    use crate::prelude::*;
    use crate::testing::{ByHand, Connected, DropCount, Gate, stopped_env};
    use convoke_core::Env;
    use convoke_core::env::Changes;

    #[test]
    fn the_first_operation_is_gone_before_the_function_runs() {
        let count = DropCount::new();
        let token = count.token();
        let sender = just(1).then(move |v| (v, drop(token)).0).let_value(|v| just((v, count.dropped())));
        assert_eq!(Connected::new(sender).outcome(), Outcome::Value((1, 1)));
        let count = DropCount::new();
        let gate = Gate::<i32, Never>::new();
        let sender = gate.holding(count.token()).let_value(|v| just((v, count.dropped())));
        let outcome = Connected::new(sender).meanwhile(|_| {
            gate.complete(Outcome::Value(5));
        });
        assert_eq!(outcome, Outcome::Value((5, 1)));
    }

    /// Completes with true if its environment has this executor.
    fn sees(executor: &ByHand) -> impl Sender<Value = bool, Error = Never> + use<> {
        let executor = executor.clone();
        read_env(move |env: &Env| env.executor().is(&executor))
    }

    #[test]
    fn the_second_sender_sees_the_executor_on_which_the_first_has_completed() {
        let (around, there) = (ByHand::new(), ByHand::new());
        let env = || Env::from(around.clone());
        let (a, b, c) = (there.clone(), there.clone(), there.clone());
        let sender = schedule(&there).let_value(move |()| sees(&a));
        assert!(sender.completes_on(&env()).unwrap().is(&there));
        let running = Connected::with_env(sender, env()).start();
        assert_eq!(there.run_all(), 1);
        assert_eq!(running.outcome(), Outcome::Value(true));
        // Also through adaptors, and further down the chain.
        let sender = schedule(&there).then(|()| 1).let_value(just).let_value(move |_| sees(&b));
        let running = Connected::with_env(sender, env()).start();
        there.run_all();
        assert_eq!(running.outcome(), Outcome::Value(true));
        // The work after it sees the executor around again.
        let sender = sequence((schedule(&there).let_value(move |()| sees(&c)).then(drop), sees(&around)));
        let running = Connected::with_env(sender, env()).start();
        there.run_all();
        assert_eq!(running.outcome(), Outcome::Value(true));
    }

    #[test]
    fn a_sender_that_completes_here_or_at_an_unknown_place_leaves_the_executor_as_it_is() {
        let around = ByHand::new();
        let env = || Env::from(around.clone());
        let sender = just(()).let_value(|()| sees(&around));
        assert_eq!(Connected::with_env(sender, env()).outcome(), Outcome::Value(true));
        let gate = Gate::<()>::new();
        let sender = gate.sender().let_value(|()| sees(&around));
        let outcome = Connected::with_env(sender, env()).meanwhile(|_| {
            gate.complete(Outcome::Value(()));
        });
        assert_eq!(outcome, Outcome::Value(true));
    }

    #[test]
    fn work_that_the_second_sender_starts_goes_to_that_executor_and_a_stop_still_reaches_it() {
        let (around, there) = (ByHand::new(), ByHand::new());
        let source = StopSource::new();
        let sender = schedule(&there).let_value(|()| never::<i32>());
        let env = Env::from(around.clone()).with(Changes::new().stop_token(source.token()));
        let running = Connected::with_env(sender, env).start();
        there.run_all();
        assert!(!running.is_complete());
        source.request_stop(StopReason::Requested);
        assert_eq!(running.outcome(), Outcome::Stopped);
        // A hop there and back comes back to where the first has completed.
        let elsewhere = ByHand::new();
        let hops = elsewhere.clone();
        let sender = schedule(&there).let_value(move |()| just(1).on(&hops));
        let running = Connected::with_env(sender, Env::from(around.clone())).start();
        assert_eq!((there.run_all(), elsewhere.run_all(), there.run_all()), (1, 1, 1));
        assert_eq!((running.outcome(), around.len()), (Outcome::Value(1), 0));
    }

    #[test]
    fn a_stop_reaches_whichever_of_the_two_runs() {
        let sender = never::<i32>().let_value(just);
        assert_eq!(Connected::with_env(sender, stopped_env()).outcome(), Outcome::Stopped);
        let source = StopSource::new();
        let running = Connected::stoppable(just(1).let_value(|_| never::<i32>()), &source).start();
        assert!(!running.is_complete());
        source.request_stop(StopReason::Requested);
        assert_eq!(running.outcome(), Outcome::Stopped);
    }
}
