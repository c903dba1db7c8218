//! The result of work that was started by `spawn_future`, and a claim on it that does not know the type of
//! the work.
//!
//! Spawned work and the consumer of its result meet at the [`Rendezvous`] of an awaiting future and the
//! operation it awaits: the consumer is the future, and its completion takes the place of the waker.

#![allow(unsafe_code)]

use core::ptr::NonNull;

use crate::operation::Completion;
use crate::{OutcomeOf, Sender};
use convoke_core::raw::sync::UnsafeCell;
use convoke_core::raw::{Abandon, Complete, Rendezvous, Wait, report_panic};
use convoke_core::{Outcome, Panic, StopReason};

use super::block::{AnyBlock, Block, Counted, Ended, Ending};
use super::{Association, leave, report_to};

/// The stored outcome and the consumer.
///
/// 1. The outcome belongs to the work until it has called `complete`; then to the caller that is told to
///    deliver, take or drop it.
/// 2. The consumer's cell belongs to the consumer until it waits; then to the work if that is told to wake
///    it, or to the consumer again if that could leave.
/// 3. There is one [`Claim`], so either one consumer, or one caller that abandons the result: not both.
pub(super) struct StoredResult<V, E> {
    rendezvous: Rendezvous,
    outcome: UnsafeCell<Option<Outcome<V, E>>>,
    consumer: UnsafeCell<Option<Completion<V, E>>>,
}

// SAFETY: rules 1 and 2 give the outcome and the consumer to one thread at a time; both are `Send`.
unsafe impl<V: Send, E: Send> Send for StoredResult<V, E> {}

/// The next step of work that has stored its outcome.
enum AfterCompletion<V, E> {
    /// Nothing: the outcome is left for the claim.
    Kept,
    /// Complete the consumer with the outcome.
    Deliver(Ready<V, E>),
    /// Drop the outcome: it is not wanted.
    Discard(Option<Outcome<V, E>>),
}

/// A consumer, and the outcome that it is completed with.
struct Ready<V, E> {
    consumer: Option<Completion<V, E>>,
    outcome: Option<Outcome<V, E>>,
}

impl<V, E> Ready<V, E> {
    fn deliver(self) {
        if let (Some(consumer), Some(outcome)) = (self.consumer, self.outcome) {
            consumer.complete(outcome);
        }
    }
}

impl<V, E> StoredResult<V, E> {
    fn new() -> Self {
        let (outcome, consumer) = (UnsafeCell::new(None), UnsafeCell::new(None));
        Self { rendezvous: Rendezvous::new(), outcome, consumer }
    }

    /// Stores the outcome of the work, and returns what the work must do next.
    fn complete(&self, outcome: Outcome<V, E>) -> AfterCompletion<V, E> {
        // SAFETY: rule 1: this is the work, and it has not called `complete` yet.
        self.outcome.with_mut(|cell| unsafe { *cell = Some(outcome) });
        match self.rendezvous.complete() {
            Complete::Leave => AfterCompletion::Kept,
            Complete::Wake => {
                let ready = self.take_both();
                // Before the delivery, which runs code of the program: a consumer that wants to leave spins
                // until this is called.
                self.rendezvous.left();
                AfterCompletion::Deliver(ready)
            }
            // The claim was abandoned, or the consumer has left: the outcome is ours.
            Complete::Free => AfterCompletion::Discard(self.take_outcome()),
        }
    }

    /// Stores the consumer. Returns it, with the outcome, if there is nothing to wait for.
    fn consume(&self, consumer: Completion<V, E>) -> Option<Ready<V, E>> {
        // SAFETY: rule 2: the consumer, of which there is one (rule 3), does not wait yet.
        self.consumer.with_mut(|cell| unsafe { *cell = Some(consumer) });
        match self.rendezvous.wait() {
            Wait::Wait => None,
            Wait::Done => Some(self.take_both()),
        }
    }

    /// Takes the consumer and the outcome. Called by the work that is told to wake the consumer, or by a
    /// consumer that finds that the work has completed.
    fn take_both(&self) -> Ready<V, E> {
        Ready { consumer: self.take_consumer(), outcome: self.take_outcome() }
    }

    /// Takes the outcome. Called by the one that the rendezvous has given it to: rule 1.
    fn take_outcome(&self) -> Option<Outcome<V, E>> {
        // SAFETY: rule 1: the caller is the only user of the outcome.
        unsafe { (*self.outcome.get()).take() }
    }

    /// Takes the consumer. Called by the one that the rendezvous has given it to: rule 2.
    fn take_consumer(&self) -> Option<Completion<V, E>> {
        // SAFETY: rule 2: the caller is the only user of the consumer's cell.
        unsafe { (*self.consumer.get()).take() }
    }

    /// Lets the waiting consumer leave. Returns its completion, or `None` if the outcome is being delivered.
    fn leave(&self) -> Option<Completion<V, E>> {
        match self.rendezvous.abandon() {
            // The consumer could leave, so its cell is the consumer's again, which this is.
            Abandon::Leave => self.take_consumer(),
            Abandon::Free => None,
        }
    }

    /// Abandons the outcome. Returns `Err` with it if the work has completed already.
    fn abandon(&self) -> Result<(), Option<Outcome<V, E>>> {
        match self.rendezvous.abandon() {
            Abandon::Leave => Ok(()),
            // The work has completed, and there is no consumer (rule 3): the outcome is ours.
            Abandon::Free => Err(self.take_outcome()),
        }
    }
}

/// The handling of the outcome by `spawn_future`: it is stored for a consumer.
pub(super) struct ToConsumer<V, E, A> {
    result: StoredResult<V, E>,
    /// Reports to the scope the panic of work that has left it, if the scope wants to hear of that.
    late: Option<A>,
}

impl<V, E, A: Association> ToConsumer<V, E, A> {
    pub(super) fn new(late: Option<A>) -> Self {
        Self { result: StoredResult::new(), late }
    }

    fn panicked(&self, panic: Panic) {
        match &self.late {
            Some(late) => report_to(late, panic),
            None => report_panic(panic),
        }
    }
}

impl<S, A> Ending<S, A> for ToConsumer<S::Value, S::Error, A>
where
    S: Sender<Value: Send, Error: Send> + 'static,
    A: Association,
{
    const OWN_STOP: bool = true;

    fn ended(mut work: Ended<S, A, Self>, outcome: OutcomeOf<S>) {
        let association = work.take_association();
        let ending = &work.block().ending;
        match ending.result.complete(outcome) {
            AfterCompletion::Kept => {}
            AfterCompletion::Deliver(ready) => ready.deliver(),
            AfterCompletion::Discard(outcome) => {
                if let Some(panic) = outcome.and_then(discard) {
                    ending.panicked(panic);
                }
            }
        }
        drop(work);
        // After the completion: what the result refers to is alive while it is received.
        if let Some(association) = association {
            leave(association);
        }
    }
}

/// Drops an outcome that is not wanted. Returns the panic of the work, or of the drop.
fn discard<V, E>(outcome: Outcome<V, E>) -> Option<Panic> {
    match outcome {
        Outcome::Panicked(panic) => Some(panic),
        other => Panic::catch(|| drop(other)).err(),
    }
}

/// A block with a result, of work whose type is erased.
pub(super) trait ResultBlock<V, E>: AnyBlock {
    /// Returns the result.
    fn stored(&self) -> &StoredResult<V, E>;

    /// Reports a panic to the scope.
    fn panicked(&self, panic: Panic);
}

impl<S, A> ResultBlock<S::Value, S::Error> for Block<S, A, ToConsumer<S::Value, S::Error, A>>
where
    S: Sender<Value: Send, Error: Send> + 'static,
    A: Association,
{
    fn stored(&self) -> &StoredResult<S::Value, S::Error> {
        &self.ending.result
    }

    fn panicked(&self, panic: Panic) {
        self.ending.panicked(panic);
    }
}

type ResultRef<V, E> = Counted<dyn ResultBlock<V, E>>;

/// The one claim on the result of spawned work: it is either used or abandoned, once.
pub(super) struct Claim<V: 'static, E: 'static>(ResultRef<V, E>);

impl<V: Send, E: Send> Claim<V, E> {
    /// Takes a count of a block whose work has not started yet. Called once for a block (rule 3 of
    /// [`StoredResult`]).
    pub(super) fn new<S, A>(block: &Counted<Block<S, A, ToConsumer<V, E, A>>>) -> Self
    where
        S: Sender<Value = V, Error = E> + 'static,
        A: Association,
    {
        Self(block.clone().erase(|block| block as NonNull<dyn ResultBlock<V, E>>))
    }

    /// Asks for the outcome, for the consumer: completes it now, or when the work has completed. Returns the
    /// waiting consumer in the second case.
    pub(super) fn consume(self, consumer: Completion<V, E>) -> Option<WaitingConsumer<V, E>> {
        match self.0.stored().consume(consumer) {
            None => Some(WaitingConsumer(self.0)),
            Some(ready) => {
                // The block is freed before the consumer is completed.
                drop(self);
                ready.deliver();
                None
            }
        }
    }

    /// Abandons the result: it will not be asked for.
    pub(super) fn abandon(self) {
        let panic = match self.0.stored().abandon() {
            Ok(()) => self.0.request_stop(StopReason::Abandoned).err(),
            Err(outcome) => outcome.and_then(discard),
        };
        if let Some(panic) = panic {
            self.0.panicked(panic);
        }
    }
}

/// A consumer that waits: the right to leave.
pub(super) struct WaitingConsumer<V: 'static, E: 'static>(ResultRef<V, E>);

impl<V: Send, E: Send> WaitingConsumer<V, E> {
    /// Returns a second pointer to the work, for the caller that reports to the scope.
    pub(super) fn scope(&self) -> ToScopeOf<V, E> {
        ToScopeOf(self.0.clone())
    }

    /// Asks the work to stop, and leaves unless the work delivers. Returns the panic of a stop callback, if
    /// one panics.
    pub(super) fn stop(self, reason: StopReason) -> Result<(), Panic> {
        let stopped = self.0.request_stop(reason);
        if let Some(consumer) = self.0.stored().leave() {
            // The block is freed before the consumer is completed.
            drop(self);
            consumer.complete(Outcome::Stopped);
        }
        stopped
    }
}

/// The scope of spawned work.
pub(super) struct ToScopeOf<V: 'static, E: 'static>(ResultRef<V, E>);

impl<V: Send, E: Send> ToScopeOf<V, E> {
    /// Reports a panic to the scope.
    pub(super) fn panicked(self, panic: Panic) {
        self.0.panicked(panic);
    }
}

#[cfg(all(test, not(feature = "loom")))]
mod tests {
    use super::*;
    use crate::prelude::*;
    use crate::testing::{Connected, Running};

    type Stored = StoredResult<i32, Never>;

    fn stored() -> Stored {
        StoredResult::new()
    }

    /// Returns a completion, and the work that it completes.
    fn consumer() -> (Completion<i32>, Running<impl Sender<Value = i32, Error = Never>>) {
        let (put, get) = std::sync::mpsc::channel();
        let work = Connected::new(from_callback(move |completion| put.send(completion).unwrap())).start();
        (get.recv().unwrap(), work)
    }

    #[test]
    fn the_work_is_told_who_wants_its_result() {
        let (result, (early, running)) = (stored(), consumer());
        assert!(result.consume(early).is_none(), "it waits");
        let AfterCompletion::Deliver(ready) = result.complete(Outcome::Value(1)) else {
            panic!("not delivered")
        };
        assert!(result.leave().is_none(), "the result is being delivered");
        ready.deliver();
        assert_eq!(running.outcome(), Outcome::Value(1));

        let (result, (late, running)) = (stored(), consumer());
        assert!(matches!(result.complete(Outcome::Value(2)), AfterCompletion::Kept));
        result.consume(late).expect("it is there").deliver();
        assert_eq!(running.outcome(), Outcome::Value(2));
    }

    #[test]
    fn a_consumer_that_left_gets_nothing_and_a_result_that_is_there_is_dropped() {
        let (result, (consumer, running)) = (stored(), consumer());
        assert!(result.consume(consumer).is_none(), "it waits");
        result.leave().expect("the work has not completed").stopped();
        assert_eq!(running.outcome(), Outcome::Stopped);
        assert!(matches!(
            result.complete(Outcome::Value(1)),
            AfterCompletion::Discard(Some(Outcome::Value(1)))
        ));

        let result = stored();
        assert!(matches!(result.complete(Outcome::Value(1)), AfterCompletion::Kept));
        assert!(matches!(result.abandon(), Err(Some(Outcome::Value(1)))));
    }

    #[test]
    fn work_whose_result_is_abandoned_is_asked_to_stop_and_keeps_its_result() {
        let result = stored();
        assert!(result.abandon().is_ok());
        assert!(matches!(
            result.complete(Outcome::Value(1)),
            AfterCompletion::Discard(Some(Outcome::Value(1)))
        ));
    }
}
