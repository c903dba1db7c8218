//! `transpose()`: turns a `Result` value into a value or an error.

use super::transform::{Transform, Transformed};
use convoke_core::{Never, Outcome};

/// Turns a `Result` into a value or an error: `Ok` becomes the value, `Err` the error. The inverse is
/// `into_result()`.
///
/// - *Completes with* the value of `Ok` or the error of `Err`; stopped passes through.
/// - *If dropped* before it starts, the sender is dropped.
/// - *Runs on* the thread on which the sender before it completes.
///
/// ```
/// use convoke::sender::prelude::*;
///
/// let parsed = just_from(|| "7".parse::<u32>()).transpose();
/// assert_eq!(sync_wait(parsed), Outcome::Value(7));
/// ```
pub type Transpose<S> = Transformed<S, ResultToDoors>;

/// The transformation of a `Result` into a value or an error.
#[derive(Clone, Copy, Debug)]
pub struct ResultToDoors;

impl<V, E> Transform<Result<V, E>, Never> for ResultToDoors {
    type Value = V;
    type Error = E;

    #[inline]
    fn apply(self, outcome: Outcome<Result<V, E>, Never>) -> Outcome<V, E> {
        outcome.transpose()
    }
}

#[cfg(test)]
mod tests {
    use crate::prelude::*;
    use crate::testing::{Connected, DropCount, Gate, all_doors, stopped_env};

    #[test]
    fn a_result_is_split_and_the_other_doors_pass() {
        assert_eq!(Connected::new(just(Ok::<_, &str>(1)).transpose()).start().outcome(), Outcome::Value(1));
        assert_eq!(
            Connected::new(just(Err::<i32, _>("e")).transpose()).start().outcome(),
            Outcome::Error("e")
        );
        let panics = just_from(|| -> Result<i32, &str> { panic!("boom") }).transpose();
        assert_eq!(Connected::new(panics).start().outcome(), Outcome::Panicked(Panic::new("boom")));
    }

    #[test]
    fn it_undoes_into_result_for_every_door() {
        for (outcome, sender) in all_doors(1, "e") {
            assert_eq!(Connected::new(sender.into_result().transpose()).start().outcome(), outcome);
        }
    }

    #[test]
    fn a_stop_before_the_start_and_while_it_runs_reaches_the_sender() {
        let sender = never::<Result<i32, &str>>().transpose();
        assert_eq!(Connected::with_env(sender, stopped_env()).start().outcome(), Outcome::Stopped);
        let source = StopSource::new();
        let gate = Gate::<Result<i32, &str>>::new();
        let running = Connected::stoppable(gate.sender().transpose(), &source).start();
        assert!(!running.is_complete());
        source.request_stop(StopReason::Requested);
        assert_eq!(running.outcome(), Outcome::Stopped);
    }

    #[test]
    fn dropping_it_unstarted_drops_the_sender() {
        let count = DropCount::new();
        drop(Connected::new(Gate::<Result<i32, &str>>::new().holding(count.token()).transpose()));
        assert_eq!(count.dropped(), 1);
    }
}
