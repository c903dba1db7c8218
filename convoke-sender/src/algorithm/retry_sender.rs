//! `retry_sender(make, again)`: makes another attempt after an error.

use super::rounds::{InRounds, Rounds};
use crate::Sender;
use convoke_core::Outcome;

/// Makes a sender and runs it; if it fails, `again` decides whether to make another attempt.
///
/// Attempts are counted from 1. `again` gets the number of the attempt that failed, and the error. To wait
/// between attempts, let `make` return a sender that waits first.
///
/// - *Completes with* the value of the first attempt that has one; with the error of an attempt after which
///   `again` returns false; stopped if an attempt was stopped, or if a stop was requested before the next is
///   made. If `make` or `again` panics: panicked.
/// - *If dropped* before it starts, both functions are dropped uncalled.
/// - *Runs on* the thread that starts it, and then on those on which its attempts complete.
///
/// ```
/// use convoke::sender::prelude::*;
///
/// let accept = |attempt| if attempt < 3 { Err("refused") } else { Ok(attempt) };
/// let connect = |attempt| just_from(move || accept(attempt)).transpose();
/// let patient = retry_sender(connect, |attempt, _| attempt < 5);
/// assert_eq!(sync_wait(patient), Outcome::Value(3));
/// let impatient = retry_sender(connect, |attempt, _| attempt < 2);
/// assert_eq!(sync_wait(impatient), Outcome::Error("refused"));
/// ```
pub fn retry_sender<F, S, A>(make: F, again: A) -> Retry<F, A>
where
    F: FnMut(u32) -> S + Send,
    S: Sender<Value: Send, Error: Send>,
    A: FnMut(u32, &S::Error) -> bool + Send,
{
    InRounds::new(Attempts { make, again, attempt: 0 })
}

/// The sender of [`retry_sender()`].
pub type Retry<F, A> = InRounds<Attempts<F, A>>;

/// The rounds of `retry_sender`: the attempts.
#[derive(Clone, Debug)]
pub struct Attempts<F, A> {
    make: F,
    again: A,
    attempt: u32,
}

impl<F, S, A> Rounds for Attempts<F, A>
where
    F: FnMut(u32) -> S + Send,
    S: Sender<Value: Send, Error: Send>,
    A: FnMut(u32, &S::Error) -> bool + Send,
{
    type Round = S;
    type Value = S::Value;
    type Error = S::Error;

    #[inline]
    fn next(&mut self) -> Result<S, Outcome<S::Value, S::Error>> {
        self.attempt = self.attempt.saturating_add(1);
        Ok((self.make)(self.attempt))
    }

    #[inline]
    fn after(&mut self, outcome: Outcome<S::Value, S::Error>) -> Option<Outcome<S::Value, S::Error>> {
        match &outcome {
            Outcome::Error(error) if (self.again)(self.attempt, error) => None,
            _ => Some(outcome),
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::prelude::*;
    use crate::testing::{Connected, Ends, Gate, all_outcomes, stopped_env};

    type Attempt = Ends<u32, &'static str>;

    /// Makes senders that fail until attempt number `good`.
    fn good_at(good: u32) -> impl FnMut(u32) -> Attempt + Send {
        move |attempt| {
            let [(_, value), (_, error), ..] = all_outcomes(attempt, "no");
            if attempt < good { error } else { value }
        }
    }

    fn always(_: u32, _: &&'static str) -> bool {
        true
    }

    #[test]
    fn continues_after_errors_until_there_is_a_value() {
        assert_eq!(Connected::new(retry_sender(good_at(1), always)).outcome(), Outcome::Value(1));
        assert_eq!(Connected::new(retry_sender(good_at(4), always)).outcome(), Outcome::Value(4));
        let late = if cfg!(miri) { 50 } else { 500_000 };
        assert_eq!(Connected::new(retry_sender(good_at(late), always)).outcome(), Outcome::Value(late));
    }

    #[test]
    fn ends_with_the_error_when_it_is_not_to_continue() {
        let mut asked = Vec::new();
        let sender = retry_sender(good_at(9), |attempt, error: &&str| {
            asked.push((attempt, *error));
            attempt < 2
        });
        assert_eq!(Connected::new(sender).outcome(), Outcome::Error("no"));
        assert_eq!(asked, [(1, "no"), (2, "no")]);
    }

    #[test]
    fn doors_other_than_the_error_pass_through_unasked() {
        for (outcome, sender) in all_outcomes(1, "e") {
            if outcome.is_error() {
                continue;
            }
            let mut once = Some(sender);
            let sender =
                retry_sender(move |_| once.take().expect("one attempt"), |_, _| unreachable!("no error"));
            assert_eq!(Connected::new(sender).outcome(), outcome);
        }
    }

    #[test]
    fn a_panic_of_either_function_is_the_outcome() {
        let sender = retry_sender(|_| -> Attempt { panic!("make") }, always);
        assert_eq!(Connected::new(sender).outcome(), Outcome::Panicked(Panic::new("make")));
        let sender = retry_sender(good_at(2), |_, _| panic!("again"));
        assert_eq!(Connected::new(sender).outcome(), Outcome::Panicked(Panic::new("again")));
    }

    #[test]
    fn a_stop_ends_it_between_attempts_and_reaches_the_one_that_runs() {
        let sender = retry_sender(|_| -> Attempt { unreachable!("stopped before") }, always);
        assert_eq!(Connected::with_env(sender, stopped_env()).outcome(), Outcome::Stopped);
        let source = StopSource::new();
        let sender = retry_sender(good_at(9), |_, _| source.request_stop(StopReason::Requested));
        assert_eq!(Connected::stoppable(sender, &source).outcome(), Outcome::Stopped);
        let (source, gate) = (StopSource::new(), Gate::<u32, &'static str>::new());
        let outcome =
            Connected::stoppable(retry_sender(|_| gate.sender(), always), &source).meanwhile(|_| {
                gate.complete(Outcome::Error("no"));
                assert!(gate.is_waiting());
                source.request_stop(StopReason::Requested);
            });
        assert_eq!(outcome, Outcome::Stopped);
    }
}
