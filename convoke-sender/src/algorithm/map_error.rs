//! `map_error(f)`: changes the error.

use super::transform::{Transform, Transformed};
use convoke_core::Outcome;

/// Calls a function with the error; its result is the new error.
///
/// - *Completes with* the value, unchanged, or the error that `f` returns; stopped passes through. If `f`
///   panics: panicked.
/// - *If dropped* before it starts, `f` is dropped uncalled.
/// - *Runs on* the thread on which the sender before it completes.
///
/// ```
/// use convoke::sender::prelude::*;
///
/// let failed = just_error::<u32, _>("no such file").map_error(str::len);
/// assert_eq!(sync_wait(failed), Outcome::Error(12));
/// ```
pub type MapError<S, F> = Transformed<S, MapFailure<F>>;

/// The transformation of the error by a function.
#[derive(Clone, Debug)]
pub struct MapFailure<F>(pub(crate) F);

impl<V, E, T, F: FnOnce(E) -> T + Send> Transform<V, E> for MapFailure<F> {
    type Value = V;
    type Error = T;

    #[inline]
    fn apply(self, outcome: Outcome<V, E>) -> Outcome<V, T> {
        outcome.map_error(self.0)
    }
}

#[cfg(test)]
mod tests {
    use crate::prelude::*;
    use crate::testing::{Connected, DropCount, Gate, all_doors, stopped_env};

    #[test]
    fn changes_the_error_and_lets_the_other_doors_pass() {
        for (outcome, sender) in all_doors(1, "e") {
            let expected = outcome.map_error(str::len);
            assert_eq!(Connected::new(sender.map_error(str::len)).start().outcome(), expected);
        }
    }

    #[test]
    fn a_panic_of_the_function_is_the_outcome() {
        let sender = just_error::<i32, _>(1).map_error(|_| -> u8 { panic!("boom") });
        assert_eq!(Connected::new(sender).start().outcome(), Outcome::Panicked(Panic::new("boom")));
    }

    #[test]
    fn a_stop_reaches_the_sender_before_the_start_and_while_it_runs() {
        let sender = never::<i32>().may_fail::<&str>().map_error(str::len);
        assert_eq!(Connected::with_env(sender, stopped_env()).start().outcome(), Outcome::Stopped);
        let source = StopSource::new();
        let gate = Gate::<i32, &str>::new();
        let running = Connected::stoppable(gate.sender().map_error(str::len), &source).start();
        source.request_stop(StopReason::Requested);
        assert_eq!(running.outcome(), Outcome::Stopped);
    }

    #[test]
    fn dropping_it_unstarted_calls_nothing() {
        let count = DropCount::new();
        let token = count.token();
        drop(Connected::new(
            just_error::<i32, _>(1).map_error(move |_: i32| -> i32 { unreachable!("{token:?}") }),
        ));
        assert_eq!(count.dropped(), 1);
    }
}
