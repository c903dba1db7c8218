//! `defer(f)`: makes the sender at its start.

#![allow(unsafe_code)]

use super::continuation::{Continuation, Sequential, Step};
use super::just::{Just, just};
use crate::{Completes, Receiver, Sender};
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
    Defer { f }
}

/// The sender of [`defer()`].
#[derive(Clone, Debug)]
#[must_use = "a sender does nothing until it is started"]
pub struct Defer<F> {
    f: F,
}

// SAFETY: rules 1 and 2 of `Sender`: `Sequential` completes the receiver last, or hands it to its second
// child. Rule 3: `f` runs in `start`, and the rest is the sender that it makes.
#[diagnostic::do_not_recommend]
unsafe impl<F, S> Sender for Defer<F>
where
    F: FnOnce() -> S + Send,
    S: Sender,
{
    type Value = S::Value;
    type Error = S::Error;
    const COMPLETES: Completes = S::COMPLETES;
    type Operation<R: Receiver<S::Value, S::Error>> = Sequential<Just<()>, OnStart<F>, R>;

    #[inline]
    fn connect<R: Receiver<S::Value, S::Error>>(self, receiver: R) -> Self::Operation<R> {
        Sequential::new(just(()), OnStart(self.f), receiver)
    }
}

/// The continuation of `defer`: makes the sender.
#[derive(Debug)]
pub struct OnStart<F>(F);

impl<F, S> Continuation<(), Never> for OnStart<F>
where
    F: FnOnce() -> S + Send,
    S: Sender,
{
    type Next = S;

    #[inline]
    fn step(self, outcome: Outcome<()>) -> Step<S> {
        match outcome {
            Outcome::Value(()) => Step::made_by(self.0),
            Outcome::Error(never) => never.absurd(),
            Outcome::Stopped => Step::Done(Outcome::Stopped),
            Outcome::Panicked(panic) => Step::Done(Outcome::Panicked(panic)),
        }
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
