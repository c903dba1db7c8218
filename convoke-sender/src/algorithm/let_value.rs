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
/// - *Runs on* the thread on which the first sender completes, for `f`, then on the executors of the second.
///
/// ```
/// use convoke::sender::prelude::*;
///
/// let sender = just(20).let_value(|v| just(v + 1).then(|v| v * 2));
/// assert_eq!(sync_wait(sender), Outcome::Value(42));
/// ```
pub type LetValue<S, F> = Sequenced<S, OnValue<F>>;

/// The continuation of `let_value`: from a value.
#[derive(Clone, Debug)]
pub struct OnValue<F>(pub(crate) F);

impl<V, E, F, N> Continuation<V, E> for OnValue<F>
where
    F: FnOnce(V) -> N + Send,
    N: Sender<Error = E>,
{
    type Next = N;

    #[inline]
    fn step(self, outcome: Outcome<V, E>) -> Step<N> {
        Step::from_value(outcome, self.0)
    }
}

#[cfg(test)]
mod tests {
    use crate::prelude::*;
    use crate::testing::{Connected, DropCount, Gate, stopped_env};

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
