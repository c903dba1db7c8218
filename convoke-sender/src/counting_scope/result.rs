//! The result of work that was spawned to be asked for later, and the counted pointer that leads to it when the type of
//! the work is forgotten.

#![allow(unsafe_code)]

use core::mem::ManuallyDrop;
use core::ptr::NonNull;

use crate::{OutcomeOf, Sender};
use convoke_core::raw::sync::{Arc, UnsafeCell};
use convoke_core::{Outcome, Panic, StopReason};

use super::block::{Counted, Ending};
use super::name::Name;
use super::rendezvous::{AfterAbandon, AfterCompletion, AfterConsume, ResultRendezvous};
use super::shared::Shared;

/// Keeps the outcome for whoever asks. The rules of who touches what are those of [`ResultRendezvous`].
pub(super) struct Kept<V, E> {
    meeting: ResultRendezvous,
    outcome: UnsafeCell<Option<Outcome<V, E>>>,
    consumer: UnsafeCell<Option<Place<V, E>>>,
    shared: Arc<Shared>,
    name: Name,
}

/// A consumer that waits: its address, and how its wait is ended.
pub(super) struct Place<V, E> {
    pub(super) operation: NonNull<()>,
    pub(super) end: unsafe fn(NonNull<()>, Outcome<V, E>),
}

// SAFETY: the rules of the meeting give the outcome and the place to one thread at a time; both may go to another.
unsafe impl<V: Send, E: Send> Send for Kept<V, E> {}

impl<V, E> Kept<V, E> {
    pub(super) fn new(shared: Arc<Shared>, name: Name) -> Self {
        Self {
            meeting: ResultRendezvous::new(),
            outcome: UnsafeCell::new(None),
            consumer: UnsafeCell::new(None),
            shared,
            name,
        }
    }

    /// # Safety
    /// Rule 1 of the meeting: the result is the caller's.
    unsafe fn take_outcome(&self) -> Option<Outcome<V, E>> {
        // SAFETY: the caller's.
        self.outcome.with_mut(|outcome| unsafe { (*outcome).take() })
    }
}

impl<S> Ending<S> for Kept<S::Value, S::Error>
where
    S: Sender<Value: Send, Error: Send> + 'static,
{
    const OWN_STOP: bool = true;

    fn ended(block: Counted<S, Self>, outcome: OutcomeOf<S>) {
        // SAFETY: rule 3 of the block: the work has completed, and it is we who complete it. From here on it is up to
        // the rules of the meeting.
        let association = unsafe { block.take_association() };
        let kept = &block.ending;
        // SAFETY: rules 1 and 2: the result is ours until the meeting, and afterwards if we are told so; the place if we
        // are told to deliver. The consumer is alive until his wait is ended, and may end the block's life for its
        // part: we count it.
        unsafe {
            kept.outcome.with_mut(|place| *place = Some(outcome));
            match kept.meeting.complete() {
                AfterCompletion::Keep => {}
                AfterCompletion::Deliver => {
                    let consumer = kept.consumer.with_mut(|consumer| (*consumer).take());
                    if let (Some(consumer), Some(outcome)) = (consumer, kept.take_outcome()) {
                        (consumer.end)(consumer.operation, outcome);
                    }
                }
                AfterCompletion::Discard => {
                    if let Some(panic) = kept.take_outcome().and_then(discard) {
                        kept.shared.panicked(kept.name, panic);
                    }
                }
            }
        }
        drop(block);
        // After the completion: what the result refers to is there while it is received.
        drop(association);
    }
}

/// Drops an outcome that nobody wants. A panic, in the work or here, is not lost.
fn discard<V, E>(outcome: Outcome<V, E>) -> Option<Panic> {
    match outcome {
        Outcome::Panicked(panic) => Some(panic),
        other => Panic::catch(|| drop(other)).err(),
    }
}

/// A counted pointer to the block of work whose type is forgotten.
pub(super) struct ResultRef<V: 'static, E: 'static> {
    block: NonNull<()>,
    table: &'static Table<V, E>,
}

struct Table<V, E> {
    kept: unsafe fn(NonNull<()>) -> NonNull<Kept<V, E>>,
    stop: unsafe fn(NonNull<()>, StopReason) -> Result<(), Panic>,
    hold: unsafe fn(NonNull<()>),
    release: unsafe fn(NonNull<()>),
}

// SAFETY: the block may be used from any thread, if what it keeps may be sent there; it cannot be made otherwise.
unsafe impl<V: Send, E: Send> Send for ResultRef<V, E> {}

/// The block of work whose result is kept.
type KeptBlock<S> = Counted<S, Kept<<S as Sender>::Value, <S as Sender>::Error>>;

/// The functions for one type of work. All ask for an address that `Counted::into_raw` gave, and whose count is held.
struct TableOf<S>(core::marker::PhantomData<S>);

impl<S: Sender<Value: Send, Error: Send> + 'static> TableOf<S> {
    const TABLE: &'static Table<S::Value, S::Error> =
        &Table { kept: Self::kept, stop: Self::stop, hold: Self::hold, release: Self::release };

    /// # Safety
    /// See the type.
    unsafe fn borrow(block: NonNull<()>) -> ManuallyDrop<KeptBlock<S>> {
        // SAFETY: the caller's; the count stays with him.
        ManuallyDrop::new(unsafe { Counted::from_raw(block) })
    }

    /// # Safety
    /// See the type.
    unsafe fn kept(block: NonNull<()>) -> NonNull<Kept<S::Value, S::Error>> {
        // SAFETY: the caller's.
        NonNull::from(&unsafe { Self::borrow(block) }.ending)
    }

    /// # Safety
    /// See the type.
    unsafe fn stop(block: NonNull<()>, reason: StopReason) -> Result<(), Panic> {
        // SAFETY: the caller's.
        unsafe { Self::borrow(block) }.request_stop(reason)
    }

    /// # Safety
    /// See the type.
    unsafe fn hold(block: NonNull<()>) {
        // SAFETY: the caller's.
        core::mem::forget(Counted::clone(&*unsafe { Self::borrow(block) }));
    }

    /// # Safety
    /// See the type; the count is given up.
    unsafe fn release(block: NonNull<()>) {
        // SAFETY: the caller's.
        drop(unsafe { KeptBlock::<S>::from_raw(block) });
    }
}

impl<V, E> ResultRef<V, E> {
    /// Forgets the type of the work.
    pub(super) fn new<S>(block: Counted<S, Kept<V, E>>) -> Self
    where
        S: Sender<Value = V, Error = E> + 'static,
        V: Send,
        E: Send,
    {
        Self { block: block.into_raw(), table: TableOf::<S>::TABLE }
    }

    fn kept(&self) -> &Kept<V, E> {
        // SAFETY: the table was made for the type of the block, and we count it.
        unsafe { (self.table.kept)(self.block).as_ref() }
    }

    /// Asks the work to stop. The panic is that of a callback.
    pub(super) fn request_stop(&self, reason: StopReason) -> Result<(), Panic> {
        // SAFETY: as in `kept`.
        unsafe { (self.table.stop)(self.block, reason) }
    }

    /// The consumer wants the result: here it is, or his place will be delivered to.
    ///
    /// # Safety
    /// Called once, by the consumer; he is alive until his wait is ended. Nobody abandons.
    pub(super) unsafe fn consume(&self, place: Place<V, E>) -> Option<Outcome<V, E>> {
        let kept = self.kept();
        // SAFETY: rule 2 of the meeting: the place is ours until we wait; rule 1.
        unsafe {
            kept.consumer.with_mut(|consumer| *consumer = Some(place));
            match kept.meeting.consume() {
                AfterConsume::Wait => None,
                AfterConsume::Take => kept.take_outcome(),
            }
        }
    }

    /// The consumer that waits wants to go. False if the result is on its way to him.
    pub(super) fn leave(&self) -> bool {
        self.kept().meeting.leave()
    }

    /// The result will not be asked for.
    ///
    /// # Safety
    /// Called once; nobody consumes.
    pub(super) unsafe fn abandon(&self) {
        let kept = self.kept();
        let panic = match kept.meeting.abandon() {
            AfterAbandon::AskToStop => self.request_stop(StopReason::Abandoned).err(),
            // SAFETY: rule 1 of the meeting.
            AfterAbandon::Drop => unsafe { kept.take_outcome() }.and_then(discard),
        };
        if let Some(panic) = panic {
            self.panicked(panic);
        }
    }

    /// Gives a panic to the scope.
    pub(super) fn panicked(&self, panic: Panic) {
        let kept = self.kept();
        kept.shared.panicked(kept.name, panic);
    }
}

impl<V, E> Clone for ResultRef<V, E> {
    fn clone(&self) -> Self {
        // SAFETY: as in `kept`.
        unsafe { (self.table.hold)(self.block) };
        Self { block: self.block, table: self.table }
    }
}

impl<V, E> Drop for ResultRef<V, E> {
    fn drop(&mut self) {
        // SAFETY: as in `kept`; our count goes.
        unsafe { (self.table.release)(self.block) };
    }
}
