//! `let_stopped(f)`: continues with another sender if the first was stopped.

use super::continuation::{Continuation, Sequenced, Step};
use crate::Sender;
use convoke_core::Outcome;

/// Calls a function if the work was stopped, and continues with the sender that it returns. That sender runs
/// in the same environment: a stop request in it still applies.
///
/// - *Completes with* the value or error of the first sender, or the outcome of the second. If `f` panics:
///   panicked.
/// - *If dropped* before it starts, `f` is dropped uncalled.
/// - *Runs on* the thread on which the first sender completes, for `f`, then on the executors of the second.
///
/// ```
/// use convoke::sender::prelude::*;
///
/// let sender = just_stopped::<u32>().let_stopped(|| just(0));
/// assert_eq!(sync_wait(sender), Outcome::Value(0));
/// ```
pub type LetStopped<S, F> = Sequenced<S, StoppedContinuation<F>>;

/// The continuation of `let_stopped`: from a stop.
#[derive(Clone, Debug)]
pub struct StoppedContinuation<F>(pub(crate) F);

impl<V, E, F, N> Continuation<V, E> for StoppedContinuation<F>
where
    F: FnOnce() -> N + Send,
    N: Sender<Value = V, Error = E>,
{
    type Next = N;

    #[inline]
    fn step(self, outcome: Outcome<V, E>) -> Step<N> {
        match outcome {
            Outcome::Stopped => Step::made_by(self.0),
            other => Step::Done(other),
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::prelude::*;
    use crate::testing::{Connected, stopped_env};

    #[test]
    fn a_stop_request_is_what_it_reacts_to() {
        let sender = never::<i32>().let_stopped(|| just(9));
        assert_eq!(Connected::with_env(sender, stopped_env()).start().outcome(), Outcome::Value(9));
        let source = StopSource::new();
        let running = Connected::stoppable(never::<i32>().let_stopped(|| just(9)), &source).start();
        source.request_stop(StopReason::Requested);
        assert_eq!(running.outcome(), Outcome::Value(9));
    }
}
