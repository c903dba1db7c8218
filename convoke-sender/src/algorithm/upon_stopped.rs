//! `upon_stopped(f)`: turns a stop into a value.

use super::transform::{Transform, Transformed};
use convoke_core::Outcome;

/// Calls a function if the work was stopped; its result is the value.
///
/// - *Completes with* the value or the error, unchanged, or the value that `f` returns. If `f` panics:
///   panicked.
/// - *If dropped* before it starts, `f` is dropped uncalled.
/// - *Runs on* the thread on which the sender before it completes.
///
/// ```
/// use convoke::sender::prelude::*;
///
/// let sender = just_stopped::<u32>().upon_stopped(|| 0);
/// assert_eq!(sync_wait(sender), Outcome::Value(0));
/// ```
pub type UponStopped<S, F> = Transformed<S, StopToValue<F>>;

/// The transformation of a stop into a value.
#[derive(Clone, Debug)]
pub struct StopToValue<F>(pub(crate) F);

impl<V, E, F: FnOnce() -> V + Send> Transform<V, E> for StopToValue<F> {
    type Value = V;
    type Error = E;
    const ONLY_VALUES: bool = false;

    #[inline]
    fn apply(self, outcome: Outcome<V, E>) -> Outcome<V, E> {
        outcome.or_stopped(|| Outcome::Value((self.0)()))
    }
}

#[cfg(test)]
mod tests {
    use crate::prelude::*;
    use crate::testing::{Connected, DropCount, Gate, all_doors, stopped_env};

    #[test]
    fn turns_a_stop_into_a_value_and_lets_the_other_doors_pass() {
        for (outcome, sender) in all_doors(1, "e") {
            let expected = if outcome.is_stopped() { Outcome::Value(9) } else { outcome };
            assert_eq!(Connected::new(sender.upon_stopped(|| 9)).start().outcome(), expected);
        }
    }

    #[test]
    fn a_panic_of_the_function_is_the_outcome() {
        let sender = just_stopped::<i32>().upon_stopped(|| panic!("boom"));
        assert_eq!(Connected::new(sender).start().outcome(), Outcome::Panicked(Panic::new("boom")));
    }

    #[test]
    fn a_stop_request_before_the_start_and_while_it_runs_becomes_the_value() {
        let sender = never::<i32>().upon_stopped(|| 9);
        assert_eq!(Connected::with_env(sender, stopped_env()).start().outcome(), Outcome::Value(9));
        let source = StopSource::new();
        let gate = Gate::<i32>::new();
        let running = Connected::stoppable(gate.sender().upon_stopped(|| 9), &source).start();
        assert!(!running.is_complete());
        source.request_stop(StopReason::Requested);
        assert_eq!(running.outcome(), Outcome::Value(9));
    }

    #[test]
    fn dropping_it_unstarted_calls_nothing() {
        let count = DropCount::new();
        let token = count.token();
        drop(Connected::new(just_stopped::<i32>().upon_stopped(move || unreachable!("{token:?}"))));
        assert_eq!(count.dropped(), 1);
    }
}
