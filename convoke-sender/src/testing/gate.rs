//! Work that ends when the test says so: it waits at a gate.

#![allow(unsafe_code)]

use core::fmt;
use core::marker::PhantomPinned;
use core::pin::Pin;
use core::ptr::NonNull;

use crate::Receiver;
use crate::operation::Handshake;
use crate::prelude::*;
use convoke_core::raw::Operation;
use convoke_core::raw::sync::{Arc, Mutex};
use convoke_core::raw::{OnStop, RawCallback};

/// Work that the test completes by hand, or that completes as stopped when it is asked to.
///
/// One gate makes one sender that is started.
pub struct Gate<V, E = Never>(Arc<Mutex<Waiting<V, E>>>);

struct Waiting<V, E> {
    waiter: Option<Waiter<V, E>>,
    /// Why it was asked to stop, if it was and heard it.
    asked: Option<StopReason>,
}

impl<V, E> Waiting<V, E> {
    /// Keeps an operation that waits. False if there is one already.
    fn keep(&mut self, waiter: Waiter<V, E>) -> bool {
        let free = self.waiter.is_none();
        if free {
            self.waiter = Some(waiter);
        }
        free
    }
}

/// An operation that waits: its address, and how to complete it.
struct Waiter<V, E> {
    operation: NonNull<()>,
    complete: unsafe fn(NonNull<()>, Outcome<V, E>),
}

// SAFETY: the operation is `Send`, and whoever takes the waiter out of the mutex is the one to complete it.
unsafe impl<V, E> Send for Waiter<V, E> {}

impl<V, E> Clone for Gate<V, E> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<V: Send, E: Send> Gate<V, E> {
    /// Closed.
    pub fn new() -> Self {
        Self(Arc::new(Mutex::new(Waiting { waiter: None, asked: None })))
    }

    /// The work that waits at the gate.
    pub fn sender(&self) -> AtGate<V, E, ()> {
        self.holding(())
    }

    /// The same, with something that lives in its operation.
    pub fn holding<H: Send>(&self, held: H) -> AtGate<V, E, H> {
        AtGate { gate: self.clone(), held, deaf: false }
    }

    /// Work that waits at the gate and does not hear a stop request.
    pub fn deaf(&self) -> AtGate<V, E, ()> {
        AtGate { gate: self.clone(), held: (), deaf: true }
    }

    /// Why the work was asked to stop, if it was.
    pub fn asked_to_stop(&self) -> Option<StopReason> {
        self.0.lock().unwrap().asked
    }

    /// Whether work waits at the gate.
    pub fn is_waiting(&self) -> bool {
        self.0.lock().unwrap().waiter.is_some()
    }

    /// Completes the work that waits; false if none does (any more).
    pub fn complete(&self, outcome: Outcome<V, E>) -> bool {
        let waiter = self.0.lock().unwrap().waiter.take();
        // SAFETY: whoever takes the waiter completes it, once; it is alive until then.
        waiter.map(|waiter| unsafe { (waiter.complete)(waiter.operation, outcome) }).is_some()
    }
}

impl<V: Send, E: Send> Default for Gate<V, E> {
    fn default() -> Self {
        Self::new()
    }
}

impl<V, E> fmt::Debug for Gate<V, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Gate")
    }
}

/// The sender of a [`Gate`].
#[derive(Debug)]
pub struct AtGate<V, E, H> {
    gate: Gate<V, E>,
    held: H,
    deaf: bool,
}

// SAFETY: what it is made of keeps the contract, and the receiver is completed last.
#[diagnostic::do_not_recommend]
unsafe impl<V: Send, E: Send, H: Send> Sender for AtGate<V, E, H> {
    type Value = V;
    type Error = E;
    type Operation<R: Receiver<V, E>> = GateOperation<V, E, H, R>;

    fn connect<R: Receiver<V, E>>(self, receiver: R) -> Self::Operation<R> {
        GateOperation {
            gate: self.gate,
            _held: self.held,
            deaf: self.deaf,
            receiver: Some(receiver),
            callback: None,
            started: Handshake::new(),
            outcome: None,
            _pinned: PhantomPinned,
        }
    }
}

/// The operation of [`AtGate`].
pub struct GateOperation<V, E, H, R> {
    gate: Gate<V, E>,
    _held: H,
    deaf: bool,
    receiver: Option<R>,
    callback: Option<RawCallback<StopAtGate<V, E>>>,
    /// The work may be completed while it is still being started.
    started: Handshake,
    outcome: Option<Outcome<V, E>>,
    _pinned: PhantomPinned,
}

/// A stop request opens the gate, if nobody has yet.
struct StopAtGate<V, E>(Gate<V, E>);

impl<V: Send, E: Send> OnStop for StopAtGate<V, E> {
    fn on_stop(self, reason: StopReason) {
        self.0.0.lock().unwrap().asked = Some(reason);
        self.0.complete(Outcome::Stopped);
    }
}

impl<V: Send, E: Send, H: Send, R: Receiver<V, E>> Operation for GateOperation<V, E, H, R> {
    unsafe fn start(self: Pin<&mut Self>) {
        // SAFETY: nothing is moved out of its place but the receiver, which is not structurally pinned.
        let this = NonNull::from(unsafe { self.get_unchecked_mut() });
        // SAFETY: we are pinned until the receiver was completed; that happens at the meeting, to which both the one
        // who takes the waiter and we come.
        unsafe {
            let gate = this.as_ref().gate.clone();
            let callback = (*this.as_ptr()).callback.insert(RawCallback::new(StopAtGate(gate.clone())));
            let waiter = Waiter { operation: this.cast(), complete: Self::complete };
            if !gate.0.lock().unwrap().keep(waiter) {
                // `start` must not panic, and the one that waits already must not be lost.
                Self::complete(this.cast(), Outcome::Panicked(Panic::new("two operations wait at one gate")));
                return Self::meet(this);
            }
            // By its place and not through `as_ref`: the outcome beside it may be written just now.
            if let Some(receiver) = &(*this.as_ptr()).receiver
                && !(*this.as_ptr()).deaf
            {
                callback.register(receiver.env().stop());
            }
            Self::meet(this);
        }
    }
}

impl<V: Send, E: Send, H: Send, R: Receiver<V, E>> GateOperation<V, E, H, R> {
    /// # Safety
    /// Called once, with the operation that waits.
    unsafe fn complete(this: NonNull<()>, outcome: Outcome<V, E>) {
        let this = this.cast::<Self>();
        // SAFETY: the waiter was taken by us, so nobody else completes it; `start` does not look at the outcome before
        // the meeting.
        unsafe {
            (*this.as_ptr()).outcome = Some(outcome);
            Self::meet(this);
        }
    }

    /// # Safety
    /// Called once by `start` and once by `complete`.
    unsafe fn meet(this: NonNull<Self>) {
        // SAFETY: the second of the two is alone with the operation.
        unsafe {
            // By its place and not through `as_ref`: the other side may be writing the outcome just now.
            if (*this.as_ptr()).started.arrive() {
                let this = &mut *this.as_ptr();
                this.callback = None;
                if let (Some(receiver), Some(outcome)) = (this.receiver.take(), this.outcome.take()) {
                    receiver.complete(outcome);
                }
            }
        }
    }
}

impl<V, E, H, R> fmt::Debug for GateOperation<V, E, H, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("GateOperation")
    }
}
