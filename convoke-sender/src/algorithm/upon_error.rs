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
