//! `defer(f)`: makes the sender at its start.

use super::continuation::{Continuation, Sequenced, Step};
use super::just::{Just, just};
use crate::Sender;
use convoke_core::{Never, Outcome};

/// Makes a sender that calls `f` when it starts, and then runs the sender that `f` returns.
///
/// - *Completes with* the outcome of the sender that `f` returns. If `f` panics: panicked.
/// - *If dropped* before it starts, `f` is dropped uncalled.
/// - *Runs on* the thread that starts it, for `f`, then on the executors of the sender that `f` returns.
///
/// ```
/// use convoke::sender::prelude::*;
///
/// let sender = defer(|| just(std::process::id()));
/// assert_eq!(sync_wait(sender), Outcome::Value(std::process::id()));
/// ```
pub fn defer<F, S>(f: F) -> Defer<F>
where
    F: FnOnce() -> S + Send,
    S: Sender,
{
    Sequenced::new(just(()), OnStart(f))
}

/// The sender of [`defer()`].
pub type Defer<F> = Sequenced<Just<()>, OnStart<F>>;

/// The continuation of `defer`: makes the sender.
#[derive(Clone, Debug)]
pub struct OnStart<F>(F);

impl<F, S> Continuation<(), Never> for OnStart<F>
where
    F: FnOnce() -> S + Send,
    S: Sender,
{
    type Next = S;

    #[inline]
    fn step(self, outcome: Outcome<()>) -> Step<S> {
        Step::from_value(outcome.map_error(Never::absurd), |()| (self.0)())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use crate::prelude::*;
    use crate::testing::{Connected, DropCount, Gate, all_doors, stopped_env};

    #[test]
    fn completes_with_whatever_the_sender_made_completes_with() {
        for (outcome, sender) in all_doors(1, "e") {
            assert_eq!(Connected::new(defer(|| sender)).outcome(), outcome);
        }
    }

    #[test]
    fn the_function_is_called_at_the_start_and_not_before() {
        let called = AtomicBool::new(false);
        let connected = Connected::new(defer(|| just(called.swap(true, Ordering::Relaxed))));
        assert!(!called.load(Ordering::Relaxed));
        assert_eq!(connected.outcome(), Outcome::Value(false));
        assert!(called.load(Ordering::Relaxed));
    }

    #[test]
    fn a_panic_of_the_function_is_the_outcome() {
        let outcome = Connected::new(defer(|| -> Just<i32> { panic!("boom") })).outcome();
        assert_eq!(outcome, Outcome::Panicked(Panic::new("boom")));
    }

    #[test]
    fn a_stop_before_the_start_and_while_it_runs_reaches_the_sender_made() {
        let sender = defer(never::<i32>);
        assert_eq!(Connected::with_env(sender, stopped_env()).outcome(), Outcome::Stopped);
        let source = StopSource::new();
        let gate = Gate::<i32>::new();
        let outcome = Connected::stoppable(defer(|| gate.sender()), &source).meanwhile(|running| {
            assert!(!running.is_complete());
            source.request_stop(StopReason::Requested);
        });
        assert_eq!(outcome, Outcome::Stopped);
    }

    #[test]
    fn dropping_it_unstarted_calls_nothing() {
        let count = DropCount::new();
        let token = count.token();
        drop(Connected::new(defer(move || -> Just<i32> { unreachable!("{token:?}") })));
        assert_eq!(count.dropped(), 1);
    }
}
