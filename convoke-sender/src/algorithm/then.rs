//! `then(f)`: changes the value.

use super::transform::{Transform, Transformed};
use convoke_core::Outcome;

/// Calls a function with the value; its result is the new value.
///
/// - *Completes with* what `f` returns; error and stopped pass through. If `f` panics: panicked.
/// - *If dropped* before it starts, `f` is dropped uncalled.
/// - *Runs on* the thread on which the sender before it completes.
///
/// ```
/// use convoke::sender::prelude::*;
///
/// assert_eq!(sync_wait(just(20).then(|v| v + 1)), Outcome::Value(21));
/// ```
pub type Then<S, F> = Transformed<S, MapValue<F>>;

/// The transformation of the value by a function.
#[derive(Clone, Debug)]
pub struct MapValue<F>(pub(crate) F);

impl<V, E, T, F: FnOnce(V) -> T + Send> Transform<V, E> for MapValue<F> {
    type Value = T;
    type Error = E;

    #[inline]
    fn apply(self, outcome: Outcome<V, E>) -> Outcome<T, E> {
        outcome.map(self.0)
    }
}

#[cfg(test)]
mod tests {
    use crate::prelude::*;
    use crate::testing::{Connected, DropCount, Gate, all_doors, stopped_env};

    #[test]
    fn changes_the_value_and_lets_the_other_doors_pass() {
        for (outcome, sender) in all_doors(1, "e") {
            let expected = outcome.map(|v| v + 1);
            assert_eq!(Connected::new(sender.then(|v| v + 1)).start().outcome(), expected);
        }
    }

    #[test]
    fn a_panic_of_the_function_is_the_outcome() {
        let outcome = Connected::new(just(1).then(|_| -> i32 { panic!("boom") })).start().outcome();
        assert_eq!(outcome, Outcome::Panicked(Panic::new("boom")));
    }

    #[test]
    fn a_stop_before_the_start_is_for_the_sender_to_see() {
        let outcome = Connected::with_env(just(1).then(|v| v + 1), stopped_env()).start().outcome();
        assert_eq!(outcome, Outcome::Value(2));
        let outcome = Connected::with_env(never::<i32>().then(|v| v + 1), stopped_env()).start().outcome();
        assert_eq!(outcome, Outcome::Stopped);
    }

    #[test]
    fn a_stop_while_it_runs_reaches_the_sender() {
        let source = StopSource::new();
        let gate = Gate::<i32, &str>::new();
        let running = Connected::stoppable(gate.sender().then(|v| v + 1), &source).start();
        source.request_stop(StopReason::Requested);
        assert_eq!(running.outcome(), Outcome::Stopped);
    }

    #[test]
    fn dropping_it_unstarted_calls_nothing() {
        let count = DropCount::new();
        let token = count.token();
        drop(Connected::new(just(1).then(move |_| -> i32 { unreachable!("{token:?}") })));
        assert_eq!(count.dropped(), 1);
    }
}
