//! `then(f)`: changes the value.

use super::transform::{Transform, Transformed};
use convoke_core::Outcome;

/// Calls a function with the value; its result is the new value.
///
/// - *Completes with* what `f` returns; error and stopped pass through. If `f` panics: panicked.
/// - *If dropped* before it starts, `f` is dropped uncalled.
/// - *Runs on* the thread on which the sender before it completes.
///
/// ```
/// use convoke::sender::prelude::*;
///
/// assert_eq!(sync_wait(just(20).then(|v| v + 1)), Outcome::Value(21));
/// ```
pub type Then<S, F> = Transformed<S, MapValue<F>>;

/// The transformation of the value by a function.
#[derive(Clone, Debug)]
pub struct MapValue<F>(pub(crate) F);

impl<V, E, T, F: FnOnce(V) -> T + Send> Transform<V, E> for MapValue<F> {
    type Value = T;
    type Error = E;

    #[inline]
    fn apply(self, outcome: Outcome<V, E>) -> Outcome<T, E> {
        outcome.map(self.0)
    }
}
