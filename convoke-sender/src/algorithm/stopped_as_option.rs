//! `stopped_as_option()`: turns a stop into `None`.

use super::transform::{Transform, Transformed};
use convoke_core::Outcome;

/// Completes with an `Option`: a value becomes `Some`, a stop becomes `None`.
///
/// - *Completes with* `Some` of the value, or `None` if it was stopped; never as stopped. The error passes
///   through.
/// - *If dropped* before it starts, the sender is dropped.
/// - *Runs on* the thread on which the sender before it completes.
///
/// ```
/// use convoke::sender::prelude::*;
///
/// assert_eq!(sync_wait(just(7).stopped_as_option()), Outcome::Value(Some(7)));
/// let stopped = just_stopped::<u32>().stopped_as_option();
/// assert_eq!(sync_wait(stopped), Outcome::Value(None));
/// ```
pub type StoppedAsOption<S> = Transformed<S, StopAsNone>;

/// The transformation of a stop into a value.
#[derive(Clone, Copy, Debug)]
pub struct StopAsNone;

impl<V, E> Transform<V, E> for StopAsNone {
    type Value = Option<V>;
    type Error = E;
    const ONLY_VALUES: bool = false;

    #[inline]
    fn apply(self, outcome: Outcome<V, E>) -> Outcome<Option<V>, E> {
        outcome.stopped_as_option()
    }
}

#[cfg(test)]
mod tests {
    use crate::prelude::*;
    use crate::testing::{Connected, all_outcomes};

    #[test]
    fn value_and_stop_become_an_option_and_the_other_doors_pass() {
        let expected = [
            Outcome::Value(Some(1)),
            Outcome::Error("e"),
            Outcome::Value(None),
            Outcome::Panicked(Panic::new("door")),
        ];
        for ((_, sender), expected) in all_outcomes(1, "e").into_iter().zip(expected) {
            assert_eq!(Connected::new(sender.stopped_as_option()).start().outcome(), expected);
        }
    }
}
