//! `let_error(f)`: continues with another sender, made from the error.

use super::continuation::{Continuation, Sequenced, Step};
use crate::Sender;
use convoke_core::Outcome;

/// Calls a function with the error and continues with the sender that it returns: recovery that may itself
/// wait or fail.
///
/// - *Completes with* the value of the first sender, or the outcome of the second; stopped passes through. If
///   `f` panics: panicked.
/// - *If dropped* before it starts, `f` is dropped uncalled.
/// - *Runs on* the thread on which the first sender completes, for `f`, then on the executors of the second.
///
/// ```
/// use convoke::sender::prelude::*;
///
/// let sender = just_error::<usize, _>("gone").let_error(|error| just(error.len()));
/// assert_eq!(sync_wait(sender), Outcome::Value(4));
/// ```
pub type LetError<S, F> = Sequenced<S, ErrorContinuation<F>>;

/// The continuation of `let_error`: from an error.
#[derive(Clone, Debug)]
pub struct ErrorContinuation<F>(pub(crate) F);

impl<V, E, F, N> Continuation<V, E> for ErrorContinuation<F>
where
    F: FnOnce(E) -> N + Send,
    N: Sender<Value = V>,
{
    type Next = N;

    #[inline]
    fn step(self, outcome: Outcome<V, E>) -> Step<N> {
        match outcome {
            Outcome::Error(error) => Step::made_by(|| (self.0)(error)),
            Outcome::Value(value) => Step::Done(Outcome::Value(value)),
            Outcome::Stopped => Step::Done(Outcome::Stopped),
            Outcome::Panicked(panic) => Step::Done(Outcome::Panicked(panic)),
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::prelude::*;
    use crate::testing::{Connected, stopped_env};

    #[test]
    fn a_stop_reaches_whichever_of_the_two_runs() {
        let sender = never::<i32>().may_fail::<&str>().let_error(|_| just(1));
        assert_eq!(Connected::with_env(sender, stopped_env()).start().outcome(), Outcome::Stopped);
        let source = StopSource::new();
        let running = Connected::stoppable(just_error(1).let_error(|_| never::<i32>()), &source).start();
        source.request_stop(StopReason::Requested);
        assert_eq!(running.outcome(), Outcome::Stopped);
    }
}
