//! `materialize()`: turns the outcome into the value.

use super::transform::{Transform, Transformed};
use convoke_core::{Never, Outcome};

/// Completes with the outcome itself as a value, of all four kinds. The inverse is `dematerialize()`.
///
/// - *Completes with* the [`Outcome`] as a value, always; also if the sender panicked.
/// - *If dropped* before it starts, the sender is dropped.
/// - *Runs on* the thread on which the sender before it completes.
///
/// ```
/// use convoke::sender::prelude::*;
///
/// let stopped = just_stopped::<u32>().materialize();
/// assert_eq!(sync_wait(stopped), Outcome::Value(Outcome::Stopped));
/// ```
pub type Materialize<S> = Transformed<S, OutcomeAsValue>;

/// The transformation of the outcome into the value.
#[derive(Clone, Copy, Debug)]
pub struct OutcomeAsValue;

impl<V, E> Transform<V, E> for OutcomeAsValue {
    type Value = Outcome<V, E>;
    type Error = Never;
    const ONLY_VALUES: bool = false;

    #[inline]
    fn apply(self, outcome: Outcome<V, E>) -> Outcome<Outcome<V, E>, Never> {
        Outcome::Value(outcome)
    }
}

#[cfg(test)]
mod tests {
    use crate::prelude::*;
    use crate::testing::{Connected, all_outcomes};

    #[test]
    fn every_door_becomes_a_value() {
        for (outcome, sender) in all_outcomes(1, "e") {
            assert_eq!(Connected::new(sender.materialize()).start().outcome(), Outcome::Value(outcome));
        }
    }
}
