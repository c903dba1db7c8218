//! `drain`: waits until nobody is in a scope, and closes nothing.

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

/// See [`drain`](super::CountingScope::drain).
#[must_use = "a sender does nothing until it is started"]
pub struct Drain {
    shared: Arc<Shared>,
}

impl Drain {
    pub(super) fn new(shared: Arc<Shared>) -> Self {
        Self { shared }
    }
}

// SAFETY: the second to come to the meeting completes the receiver, as the last thing he does: `start`, or the runnable,
// which is posted to the executor of the environment.
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
            met: Handshake::new(),
            _pinned: PhantomPinned,
        }
    }
}

crate::awaitable!([] Drain);

/// The operation of [`Drain`].
///
/// 1. Whoever takes the waiter out of the scope's state, the last to leave or a stop request, wakes it; the request
///    writes `stopped` before. Nobody else touches that until the runnable is called.
/// 2. The runnable comes to the meeting, and `start` comes there too when it is done. The second is alone with
///    everything.
/// 3. Before that, `parts` and `callback` are used by `start` alone.
#[repr(C)]
pub struct DrainOperation<R> {
    // First, so that a pointer to it is a pointer to the operation.
    header: Header,
    parts: UnsafeCell<Option<(Arc<Shared>, R)>>,
    callback: UnsafeCell<Option<RawCallback<Withdraw>>>,
    stopped: Cell<bool>,
    met: Handshake,
    _pinned: PhantomPinned,
}

// SAFETY: the rules give each part to one thread at a time.
unsafe impl<R: Send> Sync for DrainOperation<R> {}

impl<R: Receiver<(), Never>> DrainOperation<R> {
    /// # Safety
    /// Called once, with the header of a live operation, by its runnable.
    unsafe fn call(header: NonNull<Header>, call: Call) {
        let this = header.cast::<Self>();
        // SAFETY: the header is the first field of the operation (`repr(C)`), which is alive until the meeting is over;
        // rule 1.
        unsafe {
            if call == Call::Stop {
                this.as_ref().stopped.set(true);
            }
            Self::meet(this);
        }
    }

    /// # Safety
    /// Called once by the runnable and once by `start`.
    unsafe fn meet(this: NonNull<Self>) {
        // SAFETY: rule 2: the second is alone.
        unsafe {
            let this = this.as_ref();
            if !this.met.arrive() {
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
        // SAFETY: rule 3: the parts are ours until the meeting, to which we come last of all. We are pinned until the
        // receiver was completed, so the runnable may lead here; the environment of the receiver outlives the callback,
        // which is removed at the meeting.
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
            after.go_on_if_over();
            Self::meet(this);
        }
    }
}

impl<R> DrainOperation<R> {
    /// # Safety
    /// Rule 1: by who has taken the waiter out of the state, before it is woken.
    unsafe fn stop(operation: NonNull<()>) {
        // SAFETY: the operation is alive until the waiter was woken.
        unsafe { operation.cast::<Self>().as_ref() }.stopped.set(true);
    }
}

/// A stop request: the wait ends, unless it has ended already.
struct Withdraw {
    shared: Arc<Shared>,
    /// By which the waiter is found.
    ticket: u64,
    operation: NonNull<()>,
    stop: unsafe fn(NonNull<()>),
}

// SAFETY: the address is followed only by who has found the waiter, and so is alone with the operation.
unsafe impl Send for Withdraw {}

impl OnStop for Withdraw {
    fn on_stop(self, _: StopReason) {
        let waiter = self.shared.state().withdraw(self.ticket);
        if let Some(waiter) = waiter {
            // SAFETY: we took the waiter out.
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
