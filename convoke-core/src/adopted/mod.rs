//! Adopted operations: work that a future starts and awaits, in memory of the task that polls the future.
//!
//! The future may be dropped at any time. The operation then goes on until it has completed, and the task waits for it. Awaited
//! senders, tasks on other executors and I/O transfers are all adopted operations.
//!
//! Rules of [`Storage`]:
//! 1. Until the operation is started everything belongs to the future. From then on `rendezvous` says who owns what.
//! 2. `outcome` belongs to the operation until it has called `Rendezvous::complete`. Then it belongs to the future, or, if the
//!    future is gone, still to the operation.
//! 3. `waker` belongs to the future, except between `Complete::Wake` and `Rendezvous::left`.
//! 4. The memory is freed by the future once it has taken the outcome, or by the side that `rendezvous` tells to free it.
//! 5. Only the future requests a stop at `stop`, and only before it abandons the operation. So the memory is not freed while stop
//!    callbacks run.

#![allow(unsafe_code)]

mod future;
mod handshake;
mod operation;
mod rendezvous;
mod slot;

pub use future::{Adoptable, AdoptedFuture, polled_again, stop_frame};
pub use handshake::Handshake;
pub use operation::{OnComplete, Operation};
pub use rendezvous::{Abandon, Complete, Peek, Rendezvous, Wait};
pub use slot::{Slot, abort_on_unwind};

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

/// An operation in flight, and the right to its outcome.
///
/// - *If dropped*, the operation is asked to stop, and the task that started it waits for it before it ends.
pub struct Adopted<V, E, O: Operation> {
    storage: NonNull<Storage<V, E, O>>,
    /// Identifies the waker that is stored. Only compared.
    waker: WakerMark,
}

// SAFETY: by the rules above the storage may be used from any thread if the outcome may; `start` requires that.
unsafe impl<V: Send, E: Send, O: Operation> Send for Adopted<V, E, O> {}

#[repr(C)]
struct Storage<V, E, O> {
    /// First, so that its address is that of the storage.
    shared: Shared<V, E>,
    operation: Slot<O>,
}

/// The part of the storage that does not depend on the type of the operation.
struct Shared<V, E> {
    rendezvous: Rendezvous,
    memory: AdoptedMemory,
    waker: UnsafeCell<Option<Waker>>,
    outcome: UnsafeCell<Option<Outcome<V, E>>>,
    env: ScopedEnv,
    stop: InPlaceStop,
    /// Frees the storage, whose type only `start` knows.
    free: unsafe fn(NonNull<Self>),
}

/// Takes the outcome of an adopted operation.
pub struct AdoptedReceiver<V, E> {
    shared: NonNull<Shared<V, E>>,
}

// SAFETY: by the rules above it may be completed on any thread if the outcome may be sent to the future: `start` requires that.
unsafe impl<V, E> Send for AdoptedReceiver<V, E> {}

impl<V: Send, E: Send, O: Operation + 'static> Adopted<V, E, O> {
    /// Connects an operation in memory of the task of `frame` and starts it. Returns the outcome if it has completed at once.
    ///
    /// # Safety
    /// The operation completes the receiver that `connect` is given exactly once, and nothing uses the operation afterwards.
    #[inline]
    pub unsafe fn start(
        connect: impl FnOnce(AdoptedReceiver<V, E>) -> O,
        frame: &Frame<'_>,
        cx: &Context<'_>,
    ) -> Result<Outcome<V, E>, Self> {
        let owner = frame.operation_owner();
        let memory = owner.adopt(Layout::new::<Storage<V, E, O>>());
        let storage = memory.address.cast::<Storage<V, E, O>>();
        // SAFETY: the memory fits and is ours alone. The owner's environment outlives its operations, and `stop` stays beside
        // the environment that refers to it until both are freed. `O: 'static` lets the operation outlive the future.
        let this = unsafe {
            let stop = NonNull::new_unchecked(&raw mut (*storage.as_ptr()).shared.stop);
            let shared = Shared {
                rendezvous: Rendezvous::new(),
                memory,
                waker: UnsafeCell::new(None),
                outcome: UnsafeCell::new(None),
                env: ScopedEnv::with_in_place_stop(owner.env(), stop),
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
        // SAFETY: rule 1; the storage does not move, and stays until the operation has completed: rule 4.
        unsafe { Slot::run(NonNull::from(&this.operation), || connect(receiver)) };
        let running = Self { storage, waker: WakerMark::of(cx.waker()) };
        if this.shared.rendezvous.completed_at_once() {
            return Ok(running.take_outcome(frame));
        }
        // SAFETY: rule 3: the future has not said yet that it waits.
        unsafe { *this.shared.waker.get() = Some(cx.waker().clone()) };
        match this.shared.rendezvous.wait() {
            Wait::Wait => Err(running),
            Wait::Done => Ok(running.take_outcome(frame)),
        }
    }

    /// Returns the outcome if the operation has completed. Otherwise passes on a stop request, and stores the waker.
    #[inline]
    pub fn poll(mut self, frame: &Frame<'_>, cx: &Context<'_>) -> Result<Outcome<V, E>, Self> {
        if self.shared().rendezvous.peek() == Peek::NotYet {
            if frame.is_asked_to_stop()
                && let Some(reason) = frame.stop_reason()
            {
                // A callback that panics does so here, in the task that awaits; the operation is abandoned by the unwinding.
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

    /// Stores the waker if it is another one than the stored one.
    fn store_waker(&mut self, waker: &Waker) -> Peek {
        let shared = self.shared();
        let identity = WakerMark::of(waker);
        if self.waker == identity {
            return shared.rendezvous.peek();
        }
        // Cloned before: the operation waits during the change, and the waker may be foreign code.
        let waker = waker.clone();
        let look = shared.rendezvous.change();
        if look == Peek::NotYet {
            // SAFETY: rule 3: the rendezvous is in the state `CHANGING`, which `change` has set.
            let before = unsafe { (*shared.waker.get()).replace(waker) };
            shared.rendezvous.changed();
            drop(before);
            self.waker = identity;
        }
        look
    }

    /// Takes the outcome and frees the memory.
    fn take_outcome(self, frame: &Frame<'_>) -> Outcome<V, E> {
        let this = ManuallyDrop::new(self);
        // SAFETY: rules 2 and 4: the rendezvous has said that the storage is ours, and as `self` is consumed it is taken once.
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
    fn shared(&self) -> &Shared<V, E> {
        // SAFETY: rule 4: the storage has not been freed, because `self` has not taken the outcome.
        unsafe { &self.storage.as_ref().shared }
    }
}

impl<V, E, O: Operation> Drop for Adopted<V, E, O> {
    fn drop(&mut self) {
        // Rule 5: before it is abandoned. A panic of a callback has been reported by the panic hook.
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
    /// Rule 4: called once, by the side that owns the storage, after the operation has completed.
    unsafe fn clear(storage: NonNull<Self>) -> (AdoptedMemory, Outcome<V, E>) {
        // SAFETY: the operation has completed and the storage is ours alone: the caller's promise.
        unsafe {
            let this = storage.as_ref();
            let outcome = (*this.shared.outcome.get()).take().expect("the operation has completed");
            let outcome = this.operation.clear_after(outcome);
            let memory = this.shared.memory;
            if let Some(waker) = (*this.shared.waker.get()).take() {
                // A foreign waker may panic when it is dropped. The panic hook has reported it; the owner must get its memory.
                let _ = Panic::catch(|| drop(waker));
            }
            storage.drop_in_place();
            (memory, outcome)
        }
    }

    /// Destroys the contents, drops the outcome and releases the memory.
    ///
    /// # Safety
    /// As for [`clear`](Storage::clear); `shared` is the first field of a storage of this type.
    unsafe fn free(shared: NonNull<Shared<V, E>>) {
        // SAFETY: `shared` is the first field (`repr(C)`). A panic of a value's destructor has been reported by the panic hook.
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
        // SAFETY: the storage is there until `Rendezvous::complete`; rule 2. After that it is touched only as the rendezvous
        // says: rules 3 and 4.
        unsafe {
            let shared = self.shared.as_ref();
            *shared.outcome.get() = Some(outcome);
            match shared.rendezvous.complete() {
                Complete::Leave => {}
                Complete::Wake => {
                    let waker = (*shared.waker.get()).take();
                    shared.rendezvous.left();
                    if let Some(waker) = waker {
                        // A foreign waker may panic. The panic hook has reported it. The thread that completes this
                        // operation may have others to complete, and does not expect to unwind.
                        drop(Panic::catch(|| waker.wake()));
                    }
                }
                Complete::Free => (shared.free)(self.shared),
            }
        }
    }

    #[inline]
    fn env(&self) -> &Env {
        // SAFETY: the storage is there until the receiver is completed.
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
