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
