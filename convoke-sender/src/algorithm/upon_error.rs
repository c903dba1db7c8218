//! `upon_error(f)`: turns an error into a value.

use super::transform::{Transform, Transformed};
use convoke_core::{Never, Outcome};

/// Calls a function with the error; its result is the value. The result cannot fail any more.
///
/// - *Completes with* the value, unchanged, or the value that `f` returns; stopped passes through. If `f`
///   panics: panicked.
/// - *If dropped* before it starts, `f` is dropped uncalled.
/// - *Runs on* the thread on which the sender before it completes.
///
/// ```
/// use convoke::sender::prelude::*;
///
/// let length = just_error::<usize, _>("no such file").upon_error(str::len);
/// assert_eq!(sync_wait(length), Outcome::Value(12));
/// ```
pub type UponError<S, F> = Transformed<S, ErrorToValue<F>>;

/// The transformation of an error into a value.
#[derive(Clone, Debug)]
pub struct ErrorToValue<F>(pub(crate) F);

impl<V, E, F: FnOnce(E) -> V + Send> Transform<V, E> for ErrorToValue<F> {
    type Value = V;
    type Error = Never;
    const ONLY_VALUES: bool = false;

    #[inline]
    fn apply(self, outcome: Outcome<V, E>) -> Outcome<V, Never> {
        outcome.or_else(|error| Outcome::Value((self.0)(error)))
    }
}

#[cfg(test)]
mod tests {
    use crate::prelude::*;
    use crate::testing::{Connected, DropCount, Gate, all_doors, stopped_env};

    #[test]
    fn turns_an_error_into_a_value_and_lets_the_other_doors_pass() {
        for (outcome, sender) in all_doors(1, "four") {
            let expected = match outcome {
                Outcome::Error(_) => Outcome::Value(4),
                other => other.map_error(|_| unreachable!()),
            };
            assert_eq!(Connected::new(sender.upon_error(str::len)).start().outcome(), expected);
        }
    }

    #[test]
    fn a_panic_of_the_function_is_the_outcome() {
        let sender = just_error::<i32, _>(1).upon_error(|_| panic!("boom"));
        assert_eq!(Connected::new(sender).start().outcome(), Outcome::Panicked(Panic::new("boom")));
    }

    #[test]
    fn a_stop_before_the_start_and_while_it_runs_reaches_the_sender_and_is_no_error() {
        let sender = never::<usize>().may_fail::<&str>().upon_error(str::len);
        assert_eq!(Connected::with_env(sender, stopped_env()).start().outcome(), Outcome::Stopped);
        let source = StopSource::new();
        let gate = Gate::<usize, &str>::new();
        let running = Connected::stoppable(gate.sender().upon_error(str::len), &source).start();
        assert!(!running.is_complete());
        source.request_stop(StopReason::Requested);
        assert_eq!(running.outcome(), Outcome::Stopped);
    }

    #[test]
    fn dropping_it_unstarted_calls_nothing() {
        let count = DropCount::new();
        let token = count.token();
        drop(Connected::new(just_error::<i32, _>(1).upon_error(move |_| unreachable!("{token:?}"))));
        assert_eq!(count.dropped(), 1);
    }
}
