//! Adopted operations: work that a future starts and awaits, in memory of the task that polls the future.
//! Awaited senders, tasks on other executors and I/O transfers are adopted operations.
//!
//! # Protocol
//! - The future starts the operation, on the thread that polls it, in memory that it gets from its task
//!   ([`OperationOwner`](crate::frame::OperationOwner)).
//! - The operation completes once, on any thread, and wakes the future. Future and operation meet in a
//!   [`Rendezvous`], which tells each of them what to do.
//! - A poll with the *stop requested* flag set requests a stop at the operation's own stop source. This is
//!   point 2 of the stop bridge, see [`stop`](crate::stop).
//! - The future may be dropped at any time. It then requests a stop, and leaves the operation to itself. The
//!   operation goes on until it has completed and frees its memory; the task waits for that.
//!
//! # Rules of `Storage`
//! 1. Until the operation is started everything belongs to the future. From then on `rendezvous` says who
//!    owns what.
//! 2. `outcome` belongs to the operation until it has called `Rendezvous::complete`. Then it belongs to the
//!    future or, if the future is gone, still to the operation.
//! 3. `waker` belongs to the future, except between `Complete::Wake` and `Rendezvous::left`.
//! 4. The memory is freed by the future once it has taken the outcome, or by the one that `rendezvous` tells
//!    to free it.
//! 5. Only the future requests a stop at `stop`, and only before it abandons the operation. So the memory is
//!    not freed while stop callbacks run.
//!
//! # Map
//! | file | contents |
//! | --- | --- |
//! | `mod.rs` | [`Adopted`], a running operation, and its storage |
//! | `future.rs` | [`AdoptedFuture`], a future on top of it |
//! | `operation.rs` | [`Operation`] and [`OnComplete`], the two ends of connected work |
//! | `rendezvous.rs` | the state machine of future and operation |
//! | `slot.rs` | [`Slot`], memory for a child operation |
//! | `start_rendezvous.rs` | [`StartRendezvous`], the rendezvous of starting and completing a child |
//! | `work_ref.rs` | [`WorkRef`], a pointer to work that is under way |

#![allow(unsafe_code)]

mod future;
mod operation;
mod rendezvous;
mod slot;
mod start_rendezvous;
mod work_ref;

pub use future::{Adoptable, AdoptedFuture, polled_again, stop_frame};
pub use operation::{OnComplete, Operation};
pub use rendezvous::{Abandon, Complete, Peek, Rendezvous, Wait};
pub use slot::{Slot, abort_on_unwind};
pub use start_rendezvous::StartRendezvous;
pub use work_ref::WorkRef;

use core::alloc::Layout;
use core::fmt;
use core::mem::ManuallyDrop;
use core::ptr::NonNull;
use core::task::{Context, Waker};

use crate::env::ScopedEnv;
use crate::frame::{AdoptedMemory, Frame, OwnerRef, WakerMark};
use crate::stop::InPlaceStop;
use crate::sync::UnsafeCell;
use crate::{Env, Outcome, Panic, StopReason};

/// A running operation, and the right to its outcome.
///
/// - *If dropped*, a stop of the operation is requested, and the task that started it waits for it before it
///   ends.
pub struct Adopted<V, E, O: Operation> {
    storage: NonNull<Storage<V, E, O>>,
    /// The identity of the stored waker. Only compared.
    waker: WakerMark,
}

// SAFETY: rules 1 to 4 say which thread accesses which field. The outcome, which moves between threads, is
// `Send`.
unsafe impl<V: Send, E: Send, O: Operation> Send for Adopted<V, E, O> {}

#[repr(C)]
struct Storage<V, E, O> {
    /// First, so that its address is that of the storage.
    shared: SharedStorage<V, E>,
    operation: Slot<O>,
}

/// The part of the storage that does not depend on the type of the operation.
struct SharedStorage<V, E> {
    rendezvous: Rendezvous,
    memory: AdoptedMemory,
    waker: UnsafeCell<Option<Waker>>,
    outcome: UnsafeCell<Option<Outcome<V, E>>>,
    env: ScopedEnv,
    stop: InPlaceStop,
    /// Frees the storage, whose full type only `start` knows.
    free: unsafe fn(NonNull<Self>),
}

/// Takes the outcome of an adopted operation.
pub struct AdoptedReceiver<V, E> {
    shared: NonNull<SharedStorage<V, E>>,
}

// SAFETY: rule 2: the operation completes it once, on any thread. `start` requires that the outcome is
// `Send`.
unsafe impl<V, E> Send for AdoptedReceiver<V, E> {}

impl<V: Send, E: Send, O: Operation + 'static> Adopted<V, E, O> {
    /// Connects an operation in memory of the task of `frame` and starts it. Returns the outcome if it
    /// completes at once.
    ///
    /// # Safety
    /// The operation completes the receiver that `connect` is given exactly once, and nothing uses the
    /// operation afterwards.
    #[inline]
    pub unsafe fn start(
        connect: impl FnOnce(AdoptedReceiver<V, E>) -> O,
        frame: &Frame<'_>,
        cx: &Context<'_>,
    ) -> Result<Outcome<V, E>, Self> {
        let owner = frame.operation_owner();
        let memory = owner.adopt(Layout::new::<Storage<V, E, O>>());
        let storage = memory.address.cast::<Storage<V, E, O>>();
        // SAFETY: `adopt` has returned memory of this layout, which is ours alone. The contract of
        // `OperationOwner` says that the owner's environment outlives its operations, and `stop` lies beside
        // the environment that refers to it until both are freed. `O: 'static` lets the operation outlive the
        // future.
        let this = unsafe {
            let stop = NonNull::new_unchecked(&raw mut (*storage.as_ptr()).shared.stop);
            let shared = SharedStorage {
                rendezvous: Rendezvous::new(),
                memory,
                waker: UnsafeCell::new(None),
                outcome: UnsafeCell::new(None),
                env: match frame.overlay() {
                    None => ScopedEnv::with_in_place_stop(owner.env(), stop),
                    Some(overlay) => ScopedEnv::with_in_place_stop(owner.env(), stop).overlaid(overlay),
                },
                stop: InPlaceStop::new(frame.deadline()),
                free: Storage::<V, E, O>::free,
            };
            storage.write(Storage { shared, operation: Slot::new() });
            storage.as_ref()
        };
        if frame.is_asked_to_stop()
            && let Some(reason) = frame.stop_reason()
        {
            this.shared.stop.request_stop(reason);
        }
        let receiver = AdoptedReceiver { shared: storage.cast() };
        // SAFETY: rule 1: the storage is ours, and its slot is empty. Rule 4: it is not freed before the
        // operation has completed.
        unsafe { Slot::run(NonNull::from(&this.operation), || connect(receiver)) };
        let running = Self { storage, waker: WakerMark::of(cx.waker()) };
        if this.shared.rendezvous.completed_at_once() {
            return Ok(running.take_outcome(frame));
        }
        // SAFETY: rule 3: the waker is ours, because `wait` was not called yet.
        unsafe { *this.shared.waker.get() = Some(cx.waker().clone()) };
        match this.shared.rendezvous.wait() {
            Wait::Wait => {
                if frame.is_asked_to_stop() {
                    frame.hold();
                }
                Err(running)
            }
            Wait::Done => Ok(running.take_outcome(frame)),
        }
    }

    /// Returns the outcome if the operation has completed. Otherwise passes a stop request on, and stores the
    /// waker.
    #[inline]
    pub fn poll(mut self, frame: &Frame<'_>, cx: &Context<'_>) -> Result<Outcome<V, E>, Self> {
        if self.shared().rendezvous.peek() == Peek::NotYet {
            if frame.is_asked_to_stop()
                && let Some(reason) = frame.stop_reason()
            {
                // A panic of a callback goes on here, in the task that awaits; unwinding it drops and so
                // abandons the operation.
                self.shared().stop.request_stop(reason);
            }
            if self.store_waker(cx.waker()) == Peek::NotYet {
                if frame.is_asked_to_stop() {
                    frame.hold();
                }
                return Err(self);
            }
        }
        Ok(self.take_outcome(frame))
    }

    /// Stores the waker if it differs from the stored one.
    fn store_waker(&mut self, waker: &Waker) -> Peek {
        let shared = self.shared();
        let identity = WakerMark::of(waker);
        if self.waker == identity {
            return shared.rendezvous.peek();
        }
        // Cloned first: a completion spins while the state is `CHANGING`, and `clone` of a waker is foreign
        // code.
        let waker = waker.clone();
        let peek = shared.rendezvous.change();
        if peek == Peek::NotYet {
            // SAFETY: rule 3: the waker is ours in the state `CHANGING`, which `change` has set.
            let before = unsafe { (*shared.waker.get()).replace(waker) };
            shared.rendezvous.changed();
            drop(before);
            self.waker = identity;
        }
        peek
    }

    /// Takes the outcome and frees the memory.
    fn take_outcome(self, frame: &Frame<'_>) -> Outcome<V, E> {
        let this = ManuallyDrop::new(self);
        // SAFETY: rules 2 and 4: the rendezvous has said `Done`, so the storage is ours. `self` is consumed,
        // so it is taken once.
        unsafe {
            let (memory, outcome) = Storage::clear(this.storage);
            let owner = frame.operation_owner();
            if memory.owner.is_at(NonNull::from(owner).cast()) {
                owner.free(memory);
            } else {
                // The future was sent to another task than the one it was started in.
                OwnerRef::release(memory);
            }
            outcome
        }
    }
}

impl<V, E, O: Operation> Adopted<V, E, O> {
    fn shared(&self) -> &SharedStorage<V, E> {
        // SAFETY: rule 4: the storage has not been freed, because `self` still exists and so has not taken
        // the outcome.
        unsafe { &self.storage.as_ref().shared }
    }
}

impl<V, E, O: Operation> Drop for Adopted<V, E, O> {
    fn drop(&mut self) {
        // Rule 5: before it is abandoned. The panic hook has reported a panic of a callback.
        let _ = Panic::catch(|| self.shared().stop.request_stop(StopReason::Abandoned));
        match self.shared().rendezvous.abandon() {
            Abandon::Leave => {}
            // SAFETY: rule 4: the rendezvous has told us to free it.
            Abandon::Free => unsafe { Storage::<V, E, O>::free(self.storage.cast()) },
        }
    }
}

impl<V, E, O: Operation> Storage<V, E, O> {
    /// Destroys the contents of the storage and returns the outcome and the memory.
    ///
    /// # Safety
    /// Rule 4: called once, by the owner of the storage, after the operation has completed.
    unsafe fn clear(storage: NonNull<Self>) -> (AdoptedMemory, Outcome<V, E>) {
        // SAFETY: rule 4: the storage is ours alone, and the operation has completed: `take_outcome` and `free`
        // are called when the rendezvous has said so.
        unsafe {
            let this = storage.as_ref();
            let outcome = (*this.shared.outcome.get()).take().expect("a completed operation has an outcome");
            let outcome = this.operation.clear_after(outcome);
            let memory = this.shared.memory;
            if let Some(waker) = (*this.shared.waker.get()).take() {
                // A foreign waker may panic when it is dropped. The panic hook has reported it; the owner
                // must get its memory back.
                let _ = Panic::catch(|| drop(waker));
            }
            // Values of an overlay may panic when they are dropped.
            let outcome = match Panic::catch(|| storage.drop_in_place()) {
                Ok(()) => outcome,
                Err(panic) => outcome.or_panic(panic),
            };
            (memory, outcome)
        }
    }

    /// Destroys the contents, drops the outcome and releases the memory.
    ///
    /// # Safety
    /// As for [`clear`](Storage::clear); `shared` is the first field of a storage of this type.
    unsafe fn free(shared: NonNull<SharedStorage<V, E>>) {
        // SAFETY: `shared` is the first field (`repr(C)`). Rule 4: the rendezvous has told the caller to free it.
        // A panic of the value's destructor has been reported by the panic hook.
        unsafe {
            let (memory, outcome) = Self::clear(shared.cast());
            let _ = Panic::catch(|| drop(outcome));
            OwnerRef::release(memory);
        }
    }
}

impl<V, E> OnComplete<Outcome<V, E>> for AdoptedReceiver<V, E> {
    #[inline]
    fn complete(self, outcome: Outcome<V, E>) {
        // SAFETY: rule 2: the outcome is ours until `Rendezvous::complete`, and rule 4: the storage exists
        // until then. After that it is accessed only as the rendezvous says: the waker after `Wake` (rule 3),
        // the storage after `Free` (rule 4).
        unsafe {
            let shared = self.shared.as_ref();
            *shared.outcome.get() = Some(outcome);
            match shared.rendezvous.complete() {
                Complete::Leave => {}
                Complete::Wake => {
                    let waker = (*shared.waker.get()).take();
                    shared.rendezvous.left();
                    if let Some(waker) = waker {
                        // A foreign waker may panic. The panic hook has reported it. The thread that
                        // completes this operation may have others to complete, and must not unwind.
                        drop(Panic::catch(|| waker.wake()));
                    }
                }
                Complete::Free => (shared.free)(self.shared),
            }
        }
    }

    #[inline]
    fn env(&self) -> &Env {
        // SAFETY: rule 4: the storage exists until the receiver is completed, which consumes it.
        unsafe { &self.shared.as_ref().env }
    }
}

impl<V, E, O: Operation> fmt::Debug for Adopted<V, E, O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Adopted").finish_non_exhaustive()
    }
}

impl<V, E> fmt::Debug for AdoptedReceiver<V, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AdoptedReceiver").finish_non_exhaustive()
    }
}
