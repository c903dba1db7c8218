//! `upon_stopped(f)`: turns a stop into a value.

use super::transform::{Transform, Transformed};
use convoke_core::Outcome;

/// Calls a function if the work was stopped; its result is the value.
///
/// - *Completes with* the value or the error, unchanged, or the value that `f` returns. If `f` panics:
///   panicked.
/// - *If dropped* before it starts, `f` is dropped uncalled.
/// - *Runs on* the thread on which the sender before it completes.
///
/// ```
/// use convoke::sender::prelude::*;
///
/// let sender = just_stopped::<u32>().upon_stopped(|| 0);
/// assert_eq!(sync_wait(sender), Outcome::Value(0));
/// ```
pub type UponStopped<S, F> = Transformed<S, StopToValue<F>>;

/// The transformation of a stop into a value.
#[derive(Clone, Debug)]
pub struct StopToValue<F>(pub(crate) F);

impl<V, E, F: FnOnce() -> V + Send> Transform<V, E> for StopToValue<F> {
    type Value = V;
    type Error = E;
    const ONLY_VALUES: bool = false;

    #[inline]
    fn apply(self, outcome: Outcome<V, E>) -> Outcome<V, E> {
        outcome.or_stopped(|| Outcome::Value((self.0)()))
    }
}
