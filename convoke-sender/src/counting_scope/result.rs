//! The result of work that was started by `spawn_future`, and a claim on it that does not know the type of
//! the work.
//!
//! Spawned work and the consumer of its result meet at the [`Rendezvous`] of an awaiting future and the
//! operation it awaits: the consumer is the future, and its completion takes the place of the waker.

#![allow(unsafe_code)]

use core::ptr::NonNull;

use crate::operation::Completion;
use crate::{OutcomeOf, Sender};
use convoke_core::raw::sync::{Arc, UnsafeCell};
use convoke_core::raw::{Abandon, Complete, Rendezvous, Wait};
use convoke_core::{Outcome, Panic, StopReason};

use super::block::{AnyBlock, Block, Counted, Ended, Ending};
use super::name::Name;
use super::shared::Shared;

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
    shared: Arc<Shared>,
    name: Name,
}

// SAFETY: rules 1 and 2 give the outcome and the consumer to one thread at a time; both are `Send`.
unsafe impl<V: Send, E: Send> Send for StoredResult<V, E> {}

impl<V, E> StoredResult<V, E> {
    pub(super) fn new(shared: Arc<Shared>, name: Name) -> Self {
        Self {
            rendezvous: Rendezvous::new(),
            outcome: UnsafeCell::new(None),
            consumer: UnsafeCell::new(None),
            shared,
            name,
        }
    }

    /// Stores the outcome of the work. Returns the consumer to deliver to, if one waits, and the outcome if
    /// it is not left here.
    fn complete(&self, outcome: Outcome<V, E>) -> (Option<Completion<V, E>>, Option<Outcome<V, E>>) {
        // SAFETY: rule 1: this is the work, and it has not called `complete` yet.
        self.outcome.with_mut(|cell| unsafe { *cell = Some(outcome) });
        match self.rendezvous.complete() {
            Complete::Leave => (None, None),
            Complete::Wake => {
                // SAFETY: rules 1 and 2: we are told to wake the consumer, so both are ours.
                let both = unsafe { ((*self.consumer.get()).take(), (*self.outcome.get()).take()) };
                // Before the delivery, which runs code of the program: a consumer that wants to leave spins
                // until this is called.
                self.rendezvous.left();
                both
            }
            // SAFETY: rule 1: the claim was abandoned, or the consumer has left: the outcome is ours.
            Complete::Free => (None, unsafe { (*self.outcome.get()).take() }),
        }
    }

    /// Stores the consumer. Returns it, with the outcome, if there is nothing to wait for.
    fn consume(&self, consumer: Completion<V, E>) -> Option<(Completion<V, E>, Option<Outcome<V, E>>)> {
        // SAFETY: rule 2: the consumer, of which there is one (rule 3), does not wait yet.
        self.consumer.with_mut(|cell| unsafe { *cell = Some(consumer) });
        match self.rendezvous.wait() {
            Wait::Wait => None,
            // SAFETY: rules 1 and 2: the work has completed, and did not find the consumer: both are ours.
            Wait::Done => unsafe {
                (*self.consumer.get()).take().map(|consumer| (consumer, (*self.outcome.get()).take()))
            },
        }
    }

    /// Lets the waiting consumer leave. Returns its completion, or `None` if the outcome is being delivered.
    fn leave(&self) -> Option<Completion<V, E>> {
        match self.rendezvous.abandon() {
            // SAFETY: rule 2: the consumer could leave, so its cell is the consumer's again, which this is.
            Abandon::Leave => unsafe { (*self.consumer.get()).take() },
            Abandon::Free => None,
        }
    }

    /// Abandons the outcome. Returns `Err` with it if the work has completed already.
    fn abandon(&self) -> Result<(), Option<Outcome<V, E>>> {
        match self.rendezvous.abandon() {
            Abandon::Leave => Ok(()),
            // SAFETY: rule 1: the work has completed, and there is no consumer (rule 3): the outcome is ours.
            Abandon::Free => Err(unsafe { (*self.outcome.get()).take() }),
        }
    }
}

impl<S> Ending<S> for StoredResult<S::Value, S::Error>
where
    S: Sender<Value: Send, Error: Send> + 'static,
{
    const OWN_STOP: bool = true;

    fn ended(mut work: Ended<S, Self>, outcome: OutcomeOf<S>) {
        let association = work.take_association();
        let stored = &work.block().ending;
        match stored.complete(outcome) {
            (Some(consumer), Some(outcome)) => consumer.complete(outcome),
            (_, outcome) => {
                if let Some(panic) = outcome.and_then(discard) {
                    stored.shared.panicked(stored.name, panic);
                }
            }
        }
        drop(work);
        // After the completion: what the result refers to is alive while it is received.
        drop(association);
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
}

impl<S> ResultBlock<S::Value, S::Error> for Block<S, StoredResult<S::Value, S::Error>>
where
    S: Sender<Value: Send, Error: Send> + 'static,
{
    fn stored(&self) -> &StoredResult<S::Value, S::Error> {
        &self.ending
    }
}

type ResultRef<V, E> = Counted<dyn ResultBlock<V, E>>;

/// The one claim on the result of spawned work: it is either used or abandoned, once.
pub(super) struct Claim<V: 'static, E: 'static>(ResultRef<V, E>);

impl<V: Send, E: Send> Claim<V, E> {
    /// Takes a count of a block whose work has not started yet. Called once for a block (rule 3 of
    /// [`StoredResult`]).
    pub(super) fn new<S>(block: &Counted<Block<S, StoredResult<V, E>>>) -> Self
    where
        S: Sender<Value = V, Error = E> + 'static,
    {
        Self(block.clone().erase(|block| block as NonNull<dyn ResultBlock<V, E>>))
    }

    /// Asks for the outcome, for the consumer: completes it now, or when the work has completed. Returns the
    /// waiting consumer in the second case.
    pub(super) fn consume(self, consumer: Completion<V, E>) -> Option<WaitingConsumer<V, E>> {
        match self.0.stored().consume(consumer) {
            None => Some(WaitingConsumer(self.0)),
            Some((consumer, outcome)) => {
                // The block is freed before the consumer is completed.
                drop(self);
                consumer.complete(outcome.unwrap_or(Outcome::Stopped));
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
            panicked(&self.0, panic);
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
        panicked(&self.0, panic);
    }
}

fn panicked<V, E>(block: &ResultRef<V, E>, panic: Panic) {
    let stored = block.stored();
    stored.shared.panicked(stored.name, panic);
}

#[cfg(all(test, not(feature = "loom")))]
mod tests {
    use super::*;
    use crate::prelude::*;
    use crate::testing::{Connected, Running};

    type Stored = StoredResult<i32, Never>;

    fn stored() -> Stored {
        StoredResult::new(Shared::new(), Name::Given("work"))
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
        let (Some(early), Some(outcome)) = result.complete(Outcome::Value(1)) else {
            panic!("not delivered")
        };
        assert!(result.leave().is_none(), "the result is being delivered");
        early.complete(outcome);
        assert_eq!(running.outcome(), Outcome::Value(1));

        let (result, (late, running)) = (stored(), consumer());
        assert!(matches!(result.complete(Outcome::Value(2)), (None, None)), "it is kept");
        let Some((late, Some(outcome))) = result.consume(late) else { panic!("it is there") };
        late.complete(outcome);
        assert_eq!(running.outcome(), Outcome::Value(2));
    }

    #[test]
    fn a_consumer_that_left_gets_nothing_and_a_result_that_is_there_is_dropped() {
        let (result, (consumer, running)) = (stored(), consumer());
        assert!(result.consume(consumer).is_none(), "it waits");
        result.leave().expect("the work has not completed").stopped();
        assert_eq!(running.outcome(), Outcome::Stopped);
        assert!(matches!(result.complete(Outcome::Value(1)), (None, Some(Outcome::Value(1)))));

        let result = stored();
        assert!(matches!(result.complete(Outcome::Value(1)), (None, None)), "it is kept");
        assert!(matches!(result.abandon(), Err(Some(Outcome::Value(1)))));
    }

    #[test]
    fn work_whose_result_is_abandoned_is_asked_to_stop_and_keeps_its_result() {
        let result = stored();
        assert!(result.abandon().is_ok());
        assert!(matches!(result.complete(Outcome::Value(1)), (None, Some(Outcome::Value(1)))));
    }
}
