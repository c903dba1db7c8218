//! The result of work that was started by `spawn_future`, and a counted pointer to it that does not know the
//! type of the work.

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

/// The stored outcome and the consumer. The rules of who touches what are those of [`ResultRendezvous`].
pub(super) struct StoredResult<V, E> {
    rendezvous: ResultRendezvous,
    outcome: UnsafeCell<Option<Outcome<V, E>>>,
    consumer: UnsafeCell<Option<Consumer<V, E>>>,
    shared: Arc<Shared>,
    name: Name,
}

/// A waiting consumer: its address, and the function that ends its wait.
pub(super) struct Consumer<V, E> {
    pub(super) operation: NonNull<()>,
    pub(super) end: unsafe fn(NonNull<()>, Outcome<V, E>),
}

// SAFETY: rules 1 and 2 of the rendezvous give the outcome and the consumer to one thread at a time; both are
// `Send`.
unsafe impl<V: Send, E: Send> Send for StoredResult<V, E> {}

impl<V, E> StoredResult<V, E> {
    pub(super) fn new(shared: Arc<Shared>, name: Name) -> Self {
        Self {
            rendezvous: ResultRendezvous::new(),
            outcome: UnsafeCell::new(None),
            consumer: UnsafeCell::new(None),
            shared,
            name,
        }
    }

    /// Takes the outcome.
    ///
    /// # Safety
    /// Rule 1 of the rendezvous: the result belongs to the caller.
    unsafe fn take_outcome(&self) -> Option<Outcome<V, E>> {
        // SAFETY: rule 1 of the rendezvous: the result belongs to the caller.
        self.outcome.with_mut(|outcome| unsafe { (*outcome).take() })
    }
}

impl<S> Ending<S> for StoredResult<S::Value, S::Error>
where
    S: Sender<Value: Send, Error: Send> + 'static,
{
    const OWN_STOP: bool = true;

    fn ended(block: Counted<S, Self>, outcome: OutcomeOf<S>) {
        // SAFETY: rule 3 of the block: the work has completed, and this is its completion. From here on the
        // rules of the rendezvous apply.
        let association = unsafe { block.take_association() };
        let stored = &block.ending;
        // SAFETY: rules 1 and 2 of the rendezvous: the result is ours until `complete`, and afterwards if
        // that says so; the consumer is ours if we are told to deliver. The consumer is alive until its wait
        // has ended. It may then drop its count of the block, but `block` is a count too.
        unsafe {
            stored.outcome.with_mut(|cell| *cell = Some(outcome));
            match stored.rendezvous.complete() {
                AfterCompletion::Keep => {}
                AfterCompletion::Deliver => {
                    let consumer = stored.consumer.with_mut(|consumer| (*consumer).take());
                    if let (Some(consumer), Some(outcome)) = (consumer, stored.take_outcome()) {
                        (consumer.end)(consumer.operation, outcome);
                    }
                }
                AfterCompletion::Discard => {
                    if let Some(panic) = stored.take_outcome().and_then(discard) {
                        stored.shared.panicked(stored.name, panic);
                    }
                }
            }
        }
        drop(block);
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

/// A counted pointer to the block of work whose type is erased.
pub(super) struct ResultRef<V: 'static, E: 'static> {
    block: NonNull<()>,
    table: &'static Table<V, E>,
}

struct Table<V, E> {
    stored: unsafe fn(NonNull<()>) -> NonNull<StoredResult<V, E>>,
    stop: unsafe fn(NonNull<()>, StopReason) -> Result<(), Panic>,
    hold: unsafe fn(NonNull<()>),
    release: unsafe fn(NonNull<()>),
}

// SAFETY: the block may be used from any thread if its result is `Send`, and `new` requires that.
unsafe impl<V: Send, E: Send> Send for ResultRef<V, E> {}

/// The block of work that was started by `spawn_future`.
type ResultBlock<S> = Counted<S, StoredResult<<S as Sender>::Value, <S as Sender>::Error>>;

/// The functions for one type of work. All require an address from `Counted::into_raw`, while the caller
/// holds a count.
struct TableOf<S>(core::marker::PhantomData<S>);

impl<S: Sender<Value: Send, Error: Send> + 'static> TableOf<S> {
    const TABLE: &'static Table<S::Value, S::Error> =
        &Table { stored: Self::stored, stop: Self::stop, hold: Self::hold, release: Self::release };

    /// Borrows the block.
    ///
    /// # Safety
    /// `block` came from `Counted::into_raw` of this type, and the caller holds a count.
    unsafe fn borrow(block: NonNull<()>) -> ManuallyDrop<ResultBlock<S>> {
        // SAFETY: the caller promises the type and a count; that stays with the caller, as this is never
        // dropped.
        ManuallyDrop::new(unsafe { Counted::from_raw(block) })
    }

    /// Returns the address of the result.
    ///
    /// # Safety
    /// `block` came from `Counted::into_raw` of this type, and the caller holds a count.
    unsafe fn stored(block: NonNull<()>) -> NonNull<StoredResult<S::Value, S::Error>> {
        // SAFETY: the caller promises what `borrow` requires.
        NonNull::from(&unsafe { Self::borrow(block) }.ending)
    }

    /// Asks the work to stop.
    ///
    /// # Safety
    /// `block` came from `Counted::into_raw` of this type, and the caller holds a count.
    unsafe fn stop(block: NonNull<()>, reason: StopReason) -> Result<(), Panic> {
        // SAFETY: the caller promises what `borrow` requires.
        unsafe { Self::borrow(block) }.request_stop(reason)
    }

    /// Takes one more count.
    ///
    /// # Safety
    /// `block` came from `Counted::into_raw` of this type, and the caller holds a count.
    unsafe fn hold(block: NonNull<()>) {
        // SAFETY: the caller promises what `borrow` requires.
        core::mem::forget(Counted::clone(&*unsafe { Self::borrow(block) }));
    }

    /// Drops a count.
    ///
    /// # Safety
    /// `block` came from `Counted::into_raw` of this type, and the caller gives up a count.
    unsafe fn release(block: NonNull<()>) {
        // SAFETY: the caller promises the type, and gives up its count.
        drop(unsafe { ResultBlock::<S>::from_raw(block) });
    }
}

impl<V, E> ResultRef<V, E> {
    /// Erases the type of the work.
    pub(super) fn new<S>(block: Counted<S, StoredResult<V, E>>) -> Self
    where
        S: Sender<Value = V, Error = E> + 'static,
        V: Send,
        E: Send,
    {
        Self { block: block.into_raw(), table: TableOf::<S>::TABLE }
    }

    fn stored(&self) -> &StoredResult<V, E> {
        // SAFETY: `new` chose the table for the type of the block, and `self` holds a count.
        unsafe { (self.table.stored)(self.block).as_ref() }
    }

    /// Asks the work to stop. Returns the panic of a stop callback, if one panics.
    pub(super) fn request_stop(&self, reason: StopReason) -> Result<(), Panic> {
        // SAFETY: `new` chose the table for the type of the block, and `self` holds a count.
        unsafe { (self.table.stop)(self.block, reason) }
    }

    /// Asks for the result, for the consumer: returns it, or delivers it later.
    ///
    /// # Safety
    /// Called once, by the consumer, which is alive until its wait has ended. `abandon` is not called.
    pub(super) unsafe fn consume(&self, consumer: Consumer<V, E>) -> Option<Outcome<V, E>> {
        let stored = self.stored();
        // SAFETY: rule 2 of the rendezvous: the consumer's slot is ours until we wait. Rule 1: the result is
        // ours if we are told to take it.
        unsafe {
            stored.consumer.with_mut(|cell| *cell = Some(consumer));
            match stored.rendezvous.consume() {
                AfterConsume::Wait => None,
                AfterConsume::Take => stored.take_outcome(),
            }
        }
    }

    /// Lets the waiting consumer leave. Returns false if the result is being delivered to it.
    pub(super) fn leave(&self) -> bool {
        self.stored().rendezvous.leave()
    }

    /// Abandons the result: it will not be asked for.
    ///
    /// # Safety
    /// Called once. `consume` is not called.
    pub(super) unsafe fn abandon(&self) {
        let stored = self.stored();
        let panic = match stored.rendezvous.abandon() {
            AfterAbandon::AskToStop => self.request_stop(StopReason::Abandoned).err(),
            // SAFETY: rule 1 of the rendezvous: we are told to drop the result.
            AfterAbandon::Drop => unsafe { stored.take_outcome() }.and_then(discard),
        };
        if let Some(panic) = panic {
            self.panicked(panic);
        }
    }

    /// Reports a panic to the scope.
    pub(super) fn panicked(&self, panic: Panic) {
        let stored = self.stored();
        stored.shared.panicked(stored.name, panic);
    }
}

impl<V, E> Clone for ResultRef<V, E> {
    fn clone(&self) -> Self {
        // SAFETY: `new` chose the table for the type of the block, and `self` holds a count.
        unsafe { (self.table.hold)(self.block) };
        Self { block: self.block, table: self.table }
    }
}

impl<V, E> Drop for ResultRef<V, E> {
    fn drop(&mut self) {
        // SAFETY: `new` chose the table for the type of the block, and `self` gives up its count.
        unsafe { (self.table.release)(self.block) };
    }
}
