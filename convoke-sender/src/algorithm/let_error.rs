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
pub type LetError<S, F> = Sequenced<S, OnError<F>>;

/// The continuation of `let_error`: from an error.
#[derive(Clone, Debug)]
pub struct OnError<F>(pub(crate) F);

impl<V, E, F, N> Continuation<V, E> for OnError<F>
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
    use crate::testing::{Connected, DropCount, all_doors, stopped_env};

    #[test]
    fn continues_from_an_error_and_lets_the_other_outcomes_pass() {
        for (outcome, sender) in all_doors(1, "e") {
            let sender = sender.let_error(|e| just_error::<i32, _>(e.len()));
            assert_eq!(Connected::new(sender).start().outcome(), outcome.map_error(str::len));
        }
        for (outcome, second) in all_doors(1, "e") {
            let sender = just_error(()).let_error(|()| second);
            assert_eq!(Connected::new(sender).start().outcome(), outcome);
        }
    }

    #[test]
    fn a_panic_of_the_function_is_the_outcome() {
        let sender = just_error::<i32, _>(1).let_error(|_| -> Just<i32> { panic!("boom") });
        assert_eq!(Connected::new(sender).start().outcome(), Outcome::Panicked(Panic::new("boom")));
    }

    #[test]
    fn a_stop_reaches_whichever_of_the_two_runs() {
        let sender = never::<i32>().may_fail::<&str>().let_error(|_| just(1));
        assert_eq!(Connected::with_env(sender, stopped_env()).start().outcome(), Outcome::Stopped);
        let source = StopSource::new();
        let running = Connected::stoppable(just_error(1).let_error(|_| never::<i32>()), &source).start();
        source.request_stop(StopReason::Requested);
        assert_eq!(running.outcome(), Outcome::Stopped);
    }

    #[test]
    fn dropping_it_unstarted_calls_nothing() {
        let count = DropCount::new();
        let token = count.token();
        drop(Connected::new(just_error(1).let_error(move |_| -> Just<i32> { unreachable!("{token:?}") })));
        assert_eq!(count.dropped(), 1);
    }
}
