//! `repeat_until(make)`: runs round after round, until one of them breaks.

use core::ops::ControlFlow;

use super::rounds::{InRounds, Rounds};
use crate::Sender;
use convoke_core::Outcome;

/// Makes a sender and runs it, again and again, until one of them completes with `ControlFlow::Break`.
///
/// The operation of a round is destroyed before the next is made, and the next uses the same memory: a
/// million rounds need as much memory, and stack, as one.
///
/// - *Completes with* the value in the `Break`; with the error of the first round that fails; stopped if a
///   round was stopped, or if a stop was requested before the next round is made. If `make` panics: panicked.
/// - *If dropped* before it starts, `make` is dropped uncalled.
/// - *Runs on* the thread that starts it, and then on those on which its rounds complete.
///
/// ```
/// use std::ops::ControlFlow;
/// use convoke::sender::prelude::*;
///
/// let enough =
///     |n| if n * n > 50 { ControlFlow::Break(n) } else { ControlFlow::Continue(()) };
/// let mut steps = 0;
/// let walk = repeat_until(move || {
///     steps += 1;
///     just(steps).then(enough)
/// });
/// assert_eq!(sync_wait(walk), Outcome::Value(8));
/// ```
pub fn repeat_until<F, S, T>(make: F) -> RepeatUntil<F>
where
    F: FnMut() -> S + Send,
    S: Sender<Value = ControlFlow<T>, Error: Send>,
    T: Send,
{
    InRounds::new(UntilBreak { make })
}

/// The sender of [`repeat_until()`].
pub type RepeatUntil<F> = InRounds<UntilBreak<F>>;

/// The rounds of `repeat_until`: a maker.
#[derive(Clone, Debug)]
pub struct UntilBreak<F> {
    make: F,
}

impl<F, S, T> Rounds for UntilBreak<F>
where
    F: FnMut() -> S + Send,
    S: Sender<Value = ControlFlow<T>, Error: Send>,
    T: Send,
{
    type Round = S;
    type Value = T;
    type Error = S::Error;

    #[inline]
    fn next(&mut self) -> Result<S, Outcome<T, S::Error>> {
        Ok((self.make)())
    }

    #[inline]
    fn after(&mut self, outcome: Outcome<ControlFlow<T>, S::Error>) -> Option<Outcome<T, S::Error>> {
        Some(match outcome {
            Outcome::Value(ControlFlow::Continue(())) => return None,
            Outcome::Value(ControlFlow::Break(value)) => Outcome::Value(value),
            Outcome::Error(error) => Outcome::Error(error),
            Outcome::Stopped => Outcome::Stopped,
            Outcome::Panicked(panic) => Outcome::Panicked(panic),
        })
    }
}

#[cfg(test)]
mod tests {
    use core::ops::ControlFlow::{self, Break, Continue};

    use crate::prelude::*;
    use crate::testing::{ByHand, Connected, DropCount, Gate, all_outcomes, stopped_env};

    const MANY: u32 = if cfg!(miri) { 100 } else { 1_000_000 };

    type Door = Gate<ControlFlow<u32>, &'static str>;

    #[test]
    fn a_million_rounds_that_complete_at_once_need_no_stack() {
        let mut round = 0;
        let sender = repeat_until(move || {
            round += 1;
            just(if round < MANY { Continue(()) } else { Break(round) })
        });
        assert_eq!(Connected::new(sender).outcome(), Outcome::Value(MANY));
    }

    #[test]
    fn rounds_that_only_happen_to_complete_at_once_need_no_stack_either() {
        let mut round = 0;
        let sender = repeat_until(move || {
            round += 1;
            // The inline executor runs at once, but the type does not say so.
            schedule(&convoke_core::InlineExecutor)
                .then(move |()| if round < MANY { Continue(()) } else { Break(round) })
        });
        assert_eq!(Connected::new(sender).outcome(), Outcome::Value(MANY));
    }

    #[test]
    fn continues_where_its_rounds_complete() {
        let by_hand = ByHand::new();
        let mut round = 0;
        let sender = repeat_until(|| {
            round += 1;
            schedule(&by_hand).then(move |()| if round < 3 { Continue(()) } else { Break(round) })
        });
        let outcome = Connected::new(sender).meanwhile(|_| {
            assert_eq!(by_hand.run_all(), 3);
        });
        assert_eq!(outcome, Outcome::Value(3));
    }

    #[test]
    fn each_door_of_a_round_but_continue_is_the_end() {
        for (outcome, sender) in all_outcomes(Break(1), "e") {
            let mut once = Some(sender);
            let sender = repeat_until(move || once.take().expect("one round"));
            let expected = outcome.map(|flow: ControlFlow<i32>| flow.break_value().unwrap());
            assert_eq!(Connected::new(sender).outcome(), expected);
        }
    }

    #[test]
    fn a_stop_is_seen_before_the_first_round_and_between_rounds() {
        let sender = repeat_until(|| -> Just<ControlFlow<u8>> { unreachable!("stopped before") });
        assert_eq!(Connected::with_env(sender, stopped_env()).outcome(), Outcome::Stopped);
        let source = StopSource::new();
        let mut rounds = 0;
        let sender = repeat_until(|| {
            rounds += 1;
            just_from(|| {
                source.request_stop(StopReason::Requested);
                ControlFlow::<u8>::Continue(())
            })
        });
        assert_eq!(Connected::stoppable(sender, &source).outcome(), Outcome::Stopped);
        assert_eq!(rounds, 1);
    }

    #[test]
    fn a_round_is_destroyed_before_the_next_is_made() {
        let (count, gate) = (DropCount::new(), Door::new());
        let mut seen = Vec::new();
        let sender = repeat_until(|| {
            seen.push(count.dropped());
            gate.holding(count.token())
        });
        let outcome = Connected::new(sender).meanwhile(|_| {
            gate.complete(Outcome::Value(Continue(())));
            gate.complete(Outcome::Value(Continue(())));
            gate.complete(Outcome::Value(Break(1)));
        });
        assert_eq!(outcome, Outcome::Value(1));
        assert_eq!((seen, count.dropped()), (vec![0, 1, 2], 3));
    }

    #[test]
    fn a_round_may_complete_on_another_thread_while_it_is_being_started() {
        let gate = Door::new();
        let mut left = if cfg!(miri) { 30 } else { 3_000 };
        let of_rounds = gate.clone();
        let running = Connected::new(repeat_until(move || of_rounds.sender())).start();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while left > 0 {
                    left -= u32::from(gate.complete(Outcome::Value(Continue(()))));
                }
                while !gate.complete(Outcome::Value(Break(7))) {}
            });
        });
        assert_eq!(running.wait(), Outcome::Value(7));
    }
}
