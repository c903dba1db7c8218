//! `into_result()`: turns value and error into one `Result` value.

use super::transform::{Transform, Transformed};
use convoke_core::{Never, Outcome};

/// Completes with a `Result`: an error becomes a value. The inverse is `transpose()`.
///
/// - *Completes with* `Ok` of the value or `Err` of the error; cannot fail; stopped passes through.
/// - *If dropped* before it starts, the sender is dropped.
/// - *Runs on* the thread on which the sender before it completes.
///
/// ```
/// use convoke::sender::prelude::*;
///
/// let sender = just_error::<u32, _>("no").into_result();
/// assert_eq!(sync_wait(sender), Outcome::Value(Err("no")));
/// ```
pub type IntoResult<S> = Transformed<S, ErrorAsValue>;

/// The transformation of an error into a value.
#[derive(Clone, Copy, Debug)]
pub struct ErrorAsValue;

impl<V, E> Transform<V, E> for ErrorAsValue {
    type Value = Result<V, E>;
    type Error = Never;
    const ONLY_VALUES: bool = false;

    #[inline]
    fn apply(self, outcome: Outcome<V, E>) -> Outcome<Result<V, E>, Never> {
        outcome.error_as_value()
    }
}

#[cfg(test)]
mod tests {
    use crate::prelude::*;
    use crate::testing::{Connected, all_outcomes};

    #[test]
    fn value_and_error_become_a_result_and_the_other_doors_pass() {
        let expected = [
            Outcome::Value(Ok(1)),
            Outcome::Value(Err("e")),
            Outcome::Stopped,
            Outcome::Panicked(Panic::new("door")),
        ];
        for ((_, sender), expected) in all_outcomes(1, "e").into_iter().zip(expected) {
            assert_eq!(Connected::new(sender.into_result()).start().outcome(), expected);
        }
    }
}
