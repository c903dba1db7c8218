//! The sender behind `repeat_until`, `repeat_n` and `retry_sender`: one piece of work after another, in the
//! same memory, in a loop that does not grow the stack however many of them complete at once. An adaptor
//! implements [`Rounds`], without `unsafe`; this file does the rest.

#![allow(unsafe_code)]

use core::fmt;
use core::marker::PhantomData;

use crate::operation::{Absent, Arrival, Serial, SerialTurn, Steps};
use crate::{Completes, OutcomeOf, Receiver, Sender};
use convoke_core::{Outcome, Panic};

/// The maker and judge of rounds. Both functions may call closures of the program; the operation catches
/// their panics.
pub trait Rounds: Send {
    /// The work of one round.
    type Round: Sender<Value: Send, Error: Send>;
    /// The type of the value that the whole completes with.
    type Value;
    /// The type of the error that the whole fails with.
    type Error;

    /// Makes the next round, or returns the final outcome.
    fn next(&mut self) -> Result<Self::Round, Outcome<Self::Value, Self::Error>>;

    /// Judges the outcome of a round: returns the final outcome, or `None` to continue.
    fn after(&mut self, outcome: OutcomeOf<Self::Round>) -> Option<Outcome<Self::Value, Self::Error>>;
}

/// A sender that runs rounds until one is the last.
///
/// The operation of a round is destroyed before the next is made, and the next uses the same memory: a
/// million rounds need as much memory, and stack, as one.
#[derive(Clone, Debug)]
#[must_use = "a sender does nothing until it is started"]
pub struct InRounds<L> {
    rounds: L,
}

impl<L> InRounds<L> {
    /// Creates a sender that runs the rounds that `rounds` makes.
    #[inline]
    pub fn new(rounds: L) -> Self {
        Self { rounds }
    }
}

// SAFETY: rules 1 and 2 of `Sender`: `Serial` completes the receiver last, after the last round was
// destroyed. Rule 3: it completes where its last round does, or at once in `start`.
#[diagnostic::do_not_recommend]
unsafe impl<L: Rounds> Sender for InRounds<L> {
    type Value = L::Value;
    type Error = L::Error;
    const COMPLETES: Completes = <L::Round as Sender>::COMPLETES;
    type Operation<R: Receiver<L::Value, L::Error>> = Serial<RoundSteps<L, R>>;

    #[inline]
    fn connect<R: Receiver<L::Value, L::Error>>(self, receiver: R) -> Self::Operation<R> {
        Serial::new(RoundSteps { rounds: self.rounds, _receiver: PhantomData }, Arrival::new(), receiver)
    }
}

/// The steps of [`InRounds`]. The thread that started a round and the one that completes it meet; the second
/// to arrive continues.
pub struct RoundSteps<L, R> {
    rounds: L,
    _receiver: PhantomData<R>,
}

impl<L, R> Steps for RoundSteps<L, R>
where
    L: Rounds,
    R: Receiver<L::Value, L::Error>,
{
    type Work = L::Round;
    type Value = L::Value;
    type Error = L::Error;
    type Receiver = R;
    type Next = Absent<L::Value, L::Error>;
    type Shared = Arrival<OutcomeOf<L::Round>>;

    #[inline]
    fn start(turn: SerialTurn<Self>) {
        resume(turn);
    }

    #[inline]
    fn ended(turn: SerialTurn<Self>, outcome: OutcomeOf<L::Round>) {
        if let Some(turn) = judge(turn, outcome) {
            resume(turn);
        }
    }
}

/// Runs rounds until one does not complete at once, or the receiver is completed.
#[inline]
fn resume<L, R>(mut turn: SerialTurn<RoundSteps<L, R>>)
where
    L: Rounds,
    R: Receiver<L::Value, L::Error>,
{
    loop {
        if turn.receiver().env().stop().stop_requested() {
            return turn.complete(Outcome::Stopped);
        }
        let round = match Panic::catch(|| turn.parts().rounds.next()) {
            Ok(Ok(round)) => round,
            Ok(Err(outcome)) => return turn.complete(outcome),
            Err(panic) => return turn.complete(Outcome::Panicked(panic)),
        };
        // If the round has not completed, its completion continues from here.
        let Some((ended, outcome)) = turn.run_in_loop(round) else { return };
        match judge(ended, outcome) {
            Some(next) => turn = next,
            None => return,
        }
    }
}

/// Judges the outcome of a round. Returns the turn to continue; completes the receiver if it was the last
/// round.
#[inline]
fn judge<L, R>(
    mut turn: SerialTurn<RoundSteps<L, R>>,
    outcome: OutcomeOf<L::Round>,
) -> Option<SerialTurn<RoundSteps<L, R>>>
where
    L: Rounds,
    R: Receiver<L::Value, L::Error>,
{
    match Panic::catch(|| turn.parts().rounds.after(outcome)) {
        Ok(None) => return Some(turn),
        Ok(Some(end)) => turn.complete(end),
        Err(panic) => turn.complete(Outcome::Panicked(panic)),
    }
    None
}

impl<L, R> fmt::Debug for RoundSteps<L, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RoundSteps").finish_non_exhaustive()
    }
}
