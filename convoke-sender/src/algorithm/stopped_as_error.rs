//! `stopped_as_error(error)`: turns a stop into an error.

use super::transform::{Transform, Transformed};
use convoke_core::Outcome;

/// Fails with `error` if the work was stopped. Call `may_fail()` first on a sender that cannot fail.
///
/// - *Completes with* the value or the error of the sender, or `error` if it was stopped; never as stopped.
/// - *If dropped* before it starts, the sender and `error` are dropped.
/// - *Runs on* the thread on which the sender before it completes.
///
/// ```
/// use convoke::sender::prelude::*;
///
/// let sender = just_stopped::<u32>().may_fail().stopped_as_error("took too long");
/// assert_eq!(sync_wait(sender), Outcome::Error("took too long"));
/// ```
pub type StoppedAsError<S, E> = Transformed<S, StopToError<E>>;

/// The transformation of a stop into an error.
#[derive(Clone, Debug)]
pub struct StopToError<E>(pub(crate) E);

impl<V, E: Send> Transform<V, E> for StopToError<E> {
    type Value = V;
    type Error = E;

    #[inline]
    fn apply(self, outcome: Outcome<V, E>) -> Outcome<V, E> {
        outcome.or_stopped(|| Outcome::Error(self.0))
    }
}

#[cfg(test)]
mod tests {
    use crate::prelude::*;
    use crate::testing::{Connected, DropCount};

    #[test]
    fn dropping_it_unstarted_drops_sender_and_error() {
        let count = DropCount::new();
        let sender = never::<i32>().may_fail().stopped_as_error(count.token());
        drop(Connected::new(sender));
        assert_eq!(count.dropped(), 1);
    }
}
