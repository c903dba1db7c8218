//! `drain`: waits until a scope is empty, and leaves it open.

#![allow(unsafe_code)]

use core::cell::Cell;
use core::fmt;
use core::marker::PhantomPinned;
use core::pin::Pin;
use core::ptr::NonNull;

use crate::{Completes, Receiver, Sender};
use convoke_core::raw::Operation;
use convoke_core::raw::sync::Arc;
use convoke_core::raw::sync::UnsafeCell;
use convoke_core::raw::{Call, Handshake, Header, OnStop, RawCallback, Runnable, WorkKind};
use convoke_core::{Never, Outcome, StopReason};

use super::shared::Shared;
use super::state::{AfterWait, Waiter};

/// The sender of [`drain`](super::CountingScope::drain).
#[must_use = "a sender does nothing until it is started"]
pub struct Drain {
    shared: Arc<Shared>,
}

impl Drain {
    pub(super) fn new(shared: Arc<Shared>) -> Self {
        Self { shared }
    }
}

// SAFETY: rules 1 and 2 of `Sender`: the second to arrive at the rendezvous completes the receiver last; the
// callback is removed by then. Rule 3: the second is `start`, or the runnable, which is posted to the
// executor of the environment.
#[diagnostic::do_not_recommend]
unsafe impl Sender for Drain {
    type Value = ();
    type Error = Never;
    const COMPLETES: Completes = Completes::Here;
    type Operation<R: Receiver<(), Never>> = DrainOperation<R>;

    fn connect<R: Receiver<(), Never>>(self, receiver: R) -> DrainOperation<R> {
        DrainOperation {
            header: Header::new(const { &WorkKind::new(DrainOperation::<R>::call) }),
            parts: UnsafeCell::new(Some((self.shared, receiver))),
            callback: UnsafeCell::new(None),
            stopped: Cell::new(false),
            rendezvous: Handshake::new(),
            _pinned: PhantomPinned,
        }
    }
}

crate::awaitable!([] Drain);

/// The operation of [`Drain`].
///
/// 1. The thread that removes the waiter from the scope's state wakes it: the last work to leave, or a stop
///    request. The stop request writes `stopped` before that. Nothing else touches `stopped` until the
///    runnable is called.
/// 2. The runnable arrives at the rendezvous, and `start` arrives there too, as its last step. The second to
///    arrive is the only user of everything.
/// 3. Before that, only `start` uses `parts` and `callback`.
#[repr(C)]
pub struct DrainOperation<R> {
    // First, so that a pointer to it is a pointer to the operation.
    header: Header,
    parts: UnsafeCell<Option<(Arc<Shared>, R)>>,
    callback: UnsafeCell<Option<RawCallback<Withdraw>>>,
    stopped: Cell<bool>,
    rendezvous: Handshake,
    _pinned: PhantomPinned,
}

// SAFETY: rules 1 to 3 give each part to one thread at a time.
unsafe impl<R: Send> Sync for DrainOperation<R> {}

impl<R: Receiver<(), Never>> DrainOperation<R> {
    /// Arrives at the rendezvous, for the runnable.
    ///
    /// # Safety
    /// Called once, with the header of a live operation, by its runnable.
    unsafe fn call(header: NonNull<Header>, call: Call) {
        let this = header.cast::<Self>();
        // SAFETY: the header is the first field of the operation (`repr(C)`), which is alive until both have
        // arrived. Rule 1: `stopped` belongs to the runnable now.
        unsafe {
            if call == Call::Stop {
                this.as_ref().stopped.set(true);
            }
            Self::arrive(this);
        }
    }

    /// Arrives at the rendezvous; the second to arrive completes the receiver.
    ///
    /// # Safety
    /// Called once by the runnable and once by `start`. Neither touches anything afterwards.
    unsafe fn arrive(this: NonNull<Self>) {
        // SAFETY: the operation is alive until both have arrived; rule 2: the second is the only user.
        unsafe {
            let this = this.as_ref();
            if !this.rendezvous.arrive() {
                return;
            }
            *this.callback.get() = None;
            let Some((shared, receiver)) = (*this.parts.get()).take() else { return };
            let outcome = match this.stopped.get() {
                true => Outcome::Stopped,
                false => shared.state().panic_for_drain().map_or(Outcome::Value(()), Outcome::Panicked),
            };
            drop(shared);
            receiver.complete(outcome);
        }
    }
}

impl<R: Receiver<(), Never>> Operation for DrainOperation<R> {
    unsafe fn start(self: Pin<&mut Self>) {
        let this = NonNull::from(self.as_ref().get_ref());
        // SAFETY: rule 3: the parts are ours until `arrive`, which is last. The operation is pinned until the
        // receiver is completed, so the runnable may point to it. The environment of the receiver outlives
        // the callback, which the second to arrive removes.
        unsafe {
            let Some((shared, receiver)) = &*this.as_ref().parts.get_const() else { return };
            let env = receiver.env();
            let runnable = Runnable::new(this.cast());
            let waiter = Waiter { executor: env.executor().clone(), runnable };
            let after = shared.state().drain(waiter);
            if let AfterWait::Waits(ticket) = after {
                let (shared, operation, stop) = (shared.clone(), this.cast(), Self::stop);
                let withdraw = Withdraw { shared, ticket, operation, stop };
                let callback = (*this.as_ref().callback.get()).insert(RawCallback::new(withdraw));
                callback.register(env.stop());
            }
            after.resume_if_over();
            Self::arrive(this);
        }
    }
}

impl<R> DrainOperation<R> {
    /// Marks the operation as stopped.
    ///
    /// # Safety
    /// Called by the thread that has removed the waiter from the state, before it wakes it (rule 1).
    unsafe fn stop(operation: NonNull<()>) {
        // SAFETY: rule 1: the operation is alive until the waiter is woken, and `stopped` belongs to the
        // caller.
        unsafe { operation.cast::<Self>().as_ref() }.stopped.set(true);
    }
}

/// The stop callback: it ends the wait, unless that has ended already.
struct Withdraw {
    shared: Arc<Shared>,
    /// The key of the waiter.
    ticket: u64,
    operation: NonNull<()>,
    stop: unsafe fn(NonNull<()>),
}

// SAFETY: the address is used only by the thread that has removed the waiter, and rule 1 gives `stopped` to
// it.
unsafe impl Send for Withdraw {}

impl OnStop for Withdraw {
    fn on_stop(self, _: StopReason) {
        let waiter = self.shared.state().withdraw(self.ticket);
        if let Some(waiter) = waiter {
            // SAFETY: this call removed the waiter, and has not woken it yet.
            unsafe { (self.stop)(self.operation) };
            waiter.wake();
        }
    }
}

impl fmt::Debug for Drain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Drain")
    }
}

impl<R> fmt::Debug for DrainOperation<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("DrainOperation")
    }
}
