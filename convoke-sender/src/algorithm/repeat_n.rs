//! `repeat_n(n, make)`: runs `n` rounds, one after the other.

use super::rounds::{InRounds, Rounds};
use crate::Sender;
use convoke_core::Outcome;

/// Makes a sender and runs it, `count` times. `make` gets the index of the round, from 0.
///
/// The operation of a round is destroyed before the next is made, and the next uses the same memory: a
/// million rounds need as much memory, and stack, as one.
///
/// - *Completes with* `()` after the last round; with the error of the first round that fails; stopped if a
///   round was stopped, or if a stop was requested before the next round is made. If `make` panics: panicked.
/// - *If dropped* before it starts, `make` is dropped uncalled.
/// - *Runs on* the thread that starts it, and then on those on which its rounds complete.
///
/// ```
/// use convoke::sender::prelude::*;
/// use std::sync::atomic::{AtomicUsize, Ordering};
///
/// let sum = AtomicUsize::new(0);
/// let add = |n| _ = sum.fetch_add(n, Ordering::Relaxed);
/// let add = repeat_n(5, |round| just(round).then(add));
/// assert_eq!(sync_wait(add), Outcome::Value(()));
/// assert_eq!(sum.into_inner(), 10);
/// ```
pub fn repeat_n<F, S>(count: usize, make: F) -> RepeatN<F>
where
    F: FnMut(usize) -> S + Send,
    S: Sender<Value = (), Error: Send>,
{
    InRounds::new(CountedRounds { make, done: 0, count })
}

/// The sender of [`repeat_n()`].
pub type RepeatN<F> = InRounds<CountedRounds<F>>;

/// The rounds of `repeat_n`: a maker, and how many rounds are done.
#[derive(Clone, Debug)]
pub struct CountedRounds<F> {
    make: F,
    done: usize,
    count: usize,
}

impl<F, S> Rounds for CountedRounds<F>
where
    F: FnMut(usize) -> S + Send,
    S: Sender<Value = (), Error: Send>,
{
    type Round = S;
    type Value = ();
    type Error = S::Error;

    #[inline]
    fn next(&mut self) -> Result<S, Outcome<(), S::Error>> {
        if self.done == self.count { Err(Outcome::Value(())) } else { Ok((self.make)(self.done)) }
    }

    #[inline]
    fn after(&mut self, outcome: Outcome<(), S::Error>) -> Option<Outcome<(), S::Error>> {
        if !outcome.is_value() {
            return Some(outcome);
        }
        self.done += 1;
        // Decided here and not in `next`: a stop that is requested after the last round comes too late.
        (self.done == self.count).then_some(Outcome::Value(()))
    }
}

#[cfg(test)]
mod tests {
    use crate::prelude::*;
    use crate::testing::{Connected, all_outcomes, stopped_env};

    #[test]
    fn makes_each_round_in_order() {
        let mut seen = Vec::new();
        let sender = repeat_n(4, |round| {
            seen.push(round);
            just(())
        });
        assert_eq!(Connected::new(sender).outcome(), Outcome::Value(()));
        assert_eq!(seen, [0, 1, 2, 3]);
    }

    #[test]
    fn no_rounds_complete_at_once() {
        let sender = repeat_n(0, |_| -> Just<()> { unreachable!("no round") });
        assert_eq!(Connected::new(sender).outcome(), Outcome::Value(()));
    }

    #[test]
    fn a_million_rounds_need_no_stack() {
        const MANY: usize = if cfg!(miri) { 100 } else { 1_000_000 };
        assert_eq!(Connected::new(repeat_n(MANY, |_| just(()))).outcome(), Outcome::Value(()));
        let sender = repeat_n(MANY, |_| schedule(&convoke_core::InlineExecutor));
        assert_eq!(Connected::new(sender).outcome(), Outcome::Value(()));
    }

    #[test]
    fn the_first_round_without_a_value_is_the_last() {
        for (outcome, sender) in all_outcomes((), "e") {
            let [(_, second), ..] = all_outcomes((), "e");
            let mut senders = [sender, second].into_iter();
            let repeated = repeat_n(2, |_| senders.next().expect("two rounds"));
            let left = usize::from(!outcome.is_value());
            assert_eq!(Connected::new(repeated).outcome(), outcome);
            assert_eq!(senders.count(), left);
        }
    }

    #[test]
    fn a_stop_ends_it_before_the_next_round_but_not_after_the_last() {
        let sender = repeat_n(1, |_| -> Just<()> { unreachable!("stopped before") });
        assert_eq!(Connected::with_env(sender, stopped_env()).outcome(), Outcome::Stopped);
        let rounds_with_a_stop_in_round = |stopping: usize| {
            let source = StopSource::new();
            let request = source.clone();
            let sender = repeat_n(2, move |round| {
                let request = request.clone();
                just_from(move || {
                    if round == stopping {
                        request.request_stop(StopReason::Requested);
                    }
                })
            });
            Connected::stoppable(sender, &source).outcome()
        };
        assert_eq!(rounds_with_a_stop_in_round(0), Outcome::Stopped);
        assert_eq!(rounds_with_a_stop_in_round(1), Outcome::Value(()));
    }
}
