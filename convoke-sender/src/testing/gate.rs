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
/// At most one sender of a gate may be running at a time.
pub struct Gate<V, E = Never>(Arc<Mutex<Waiting<V, E>>>);

struct Waiting<V, E> {
    waiter: Option<Waiter<V, E>>,
    /// The reason why the work was asked to stop, if it was.
    asked: Option<StopReason>,
}

impl<V, E> Waiting<V, E> {
    /// Stores a waiting operation. Returns false if there is one already.
    fn store(&mut self, waiter: Waiter<V, E>) -> bool {
        let free = self.waiter.is_none();
        if free {
            self.waiter = Some(waiter);
        }
        free
    }
}

/// A waiting operation: its address, and the function that completes it.
struct Waiter<V, E> {
    operation: NonNull<()>,
    complete: unsafe fn(NonNull<()>, Outcome<V, E>),
}

// SAFETY: the operation is `Send`, and only the thread that takes the waiter out of the mutex completes it.
unsafe impl<V, E> Send for Waiter<V, E> {}

impl<V, E> Clone for Gate<V, E> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<V: Send, E: Send> Gate<V, E> {
    /// Creates a closed gate.
    pub fn new() -> Self {
        Self(Arc::new(Mutex::new(Waiting { waiter: None, asked: None })))
    }

    /// Returns work that waits at the gate.
    pub fn sender(&self) -> AtGate<V, E, ()> {
        self.holding(())
    }

    /// Returns work that waits at the gate, and whose operation contains `held`.
    pub fn holding<H: Send>(&self, held: H) -> AtGate<V, E, H> {
        AtGate { gate: self.clone(), held, deaf: false }
    }

    /// Returns work that waits at the gate and ignores stop requests.
    pub fn deaf(&self) -> AtGate<V, E, ()> {
        AtGate { gate: self.clone(), held: (), deaf: true }
    }

    /// Returns the reason why the work was asked to stop, if it was.
    pub fn asked_to_stop(&self) -> Option<StopReason> {
        self.0.lock().unwrap().asked
    }

    /// Returns true if work waits at the gate.
    pub fn is_waiting(&self) -> bool {
        self.0.lock().unwrap().waiter.is_some()
    }

    /// Completes the waiting work; returns false if there is none.
    pub fn complete(&self, outcome: Outcome<V, E>) -> bool {
        let waiter = self.0.lock().unwrap().waiter.take();
        // SAFETY: the waiter was taken out of the mutex, so it is completed once; its operation is alive
        // until then.
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

// SAFETY: rules 1 and 2 of `Sender`: the second to arrive at the rendezvous completes the receiver last; the
// callback is removed by then. Rule 3: `COMPLETES` is the default, `Anywhere`.
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
            rendezvous: Handshake::new(),
            outcome: None,
            _pinned: PhantomPinned,
        }
    }
}

/// The operation of [`AtGate`].
///
/// 1. `start` is the only user of `callback`, and reads `receiver`; the completion is the only user of
///    `outcome`. Both arrive at the rendezvous.
/// 2. The second to arrive is the only user of everything, and completes the receiver.
pub struct GateOperation<V, E, H, R> {
    gate: Gate<V, E>,
    _held: H,
    deaf: bool,
    receiver: Option<R>,
    callback: Option<RawCallback<StopAtGate<V, E>>>,
    /// The work may be completed while it is still being started.
    rendezvous: Handshake,
    outcome: Option<Outcome<V, E>>,
    _pinned: PhantomPinned,
}

/// The stop callback: it completes the waiting work, if that has not completed yet.
struct StopAtGate<V, E>(Gate<V, E>);

impl<V: Send, E: Send> OnStop for StopAtGate<V, E> {
    fn on_stop(self, reason: StopReason) {
        self.0.0.lock().unwrap().asked = Some(reason);
        self.0.complete(Outcome::Stopped);
    }
}

impl<V: Send, E: Send, H: Send, R: Receiver<V, E>> Operation for GateOperation<V, E, H, R> {
    unsafe fn start(self: Pin<&mut Self>) {
        // SAFETY: only the receiver is moved out, and it is not structurally pinned.
        let this = NonNull::from(unsafe { self.get_unchecked_mut() });
        // SAFETY: rule 1. The operation is pinned until the receiver is completed, which happens when both
        // `start` and the completion have arrived.
        unsafe {
            let gate = this.as_ref().gate.clone();
            let callback = (*this.as_ptr()).callback.insert(RawCallback::new(StopAtGate(gate.clone())));
            let waiter = Waiter { operation: this.cast(), complete: Self::complete };
            if !gate.0.lock().unwrap().store(waiter) {
                // `start` must not panic, and the operation that waits already must not be lost.
                Self::complete(this.cast(), Outcome::Panicked(Panic::new("two operations wait at one gate")));
                return Self::arrive(this);
            }
            // By field and not through `as_ref`: another thread may be writing the outcome beside it.
            if let Some(receiver) = &(*this.as_ptr()).receiver
                && !(*this.as_ptr()).deaf
            {
                callback.register(receiver.env().stop());
            }
            Self::arrive(this);
        }
    }
}

impl<V: Send, E: Send, H: Send, R: Receiver<V, E>> GateOperation<V, E, H, R> {
    /// Stores the outcome and arrives.
    ///
    /// # Safety
    /// Called once, with the operation that waits.
    unsafe fn complete(this: NonNull<()>, outcome: Outcome<V, E>) {
        let this = this.cast::<Self>();
        // SAFETY: rule 1: the caller took the waiter, so it is the only one that completes it. The operation
        // is alive until both have arrived.
        unsafe {
            (*this.as_ptr()).outcome = Some(outcome);
            Self::arrive(this);
        }
    }

    /// Arrives at the rendezvous; the second to arrive completes the receiver.
    ///
    /// # Safety
    /// Called once by `start` and once by `complete`. Neither touches anything afterwards.
    unsafe fn arrive(this: NonNull<Self>) {
        // SAFETY: the operation is alive until both have arrived; rule 2: the second is the only user.
        unsafe {
            // By field and not through `as_ref`: another thread may be writing the outcome beside it.
            if (*this.as_ptr()).rendezvous.arrive() {
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
