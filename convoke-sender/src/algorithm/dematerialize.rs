//! `dematerialize()`: turns a value that is an outcome into the outcome.

use super::transform::{Transform, Transformed};
use convoke_core::{Never, Outcome};

/// Completes with the [`Outcome`] that is the value of the sender: the inverse of `materialize()`.
///
/// - *Completes with* the outcome that was the value; stopped and panicked of the sender itself pass through.
/// - *If dropped* before it starts, the sender is dropped.
/// - *Runs on* the thread on which the sender before it completes.
///
/// ```
/// use convoke::sender::prelude::*;
///
/// let sender = just(Outcome::<u32, &str>::Error("no")).dematerialize();
/// assert_eq!(sync_wait(sender), Outcome::Error("no"));
/// ```
pub type Dematerialize<S> = Transformed<S, ValueAsOutcome>;

/// The transformation of a value that is an outcome into the outcome.
#[derive(Clone, Copy, Debug)]
pub struct ValueAsOutcome;

impl<V, E> Transform<Outcome<V, E>, Never> for ValueAsOutcome {
    type Value = V;
    type Error = E;

    #[inline]
    fn apply(self, outcome: Outcome<Outcome<V, E>, Never>) -> Outcome<V, E> {
        match outcome {
            Outcome::Value(outcome) => outcome,
            Outcome::Error(never) => never.absurd(),
            Outcome::Stopped => Outcome::Stopped,
            Outcome::Panicked(panic) => Outcome::Panicked(panic),
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::prelude::*;
    use crate::testing::{Connected, all_outcomes};

    #[test]
    fn the_outcome_in_the_value_is_the_outcome() {
        let twice = all_outcomes(1, "e").into_iter().zip(all_outcomes(1, "e"));
        for ((expected, _), (outcome, _)) in twice {
            assert_eq!(Connected::new(just(outcome).dematerialize()).start().outcome(), expected);
        }
    }

    #[test]
    fn a_panic_of_the_sender_itself_passes() {
        let sender = just_from(|| -> Outcome<i32, &str> { panic!("boom") }).dematerialize();
        assert_eq!(Connected::new(sender).start().outcome(), Outcome::Panicked(Panic::new("boom")));
    }
}
