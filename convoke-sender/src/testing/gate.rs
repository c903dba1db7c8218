//! Work that ends when the test says so: it waits at a gate.

#![allow(unsafe_code)]

use core::fmt;
use core::marker::PhantomData;
use core::pin::Pin;

use crate::Receiver;
use crate::operation::{Listening, Pending, Starting, Until};
use crate::prelude::*;
use convoke_core::raw::OnStop;
use convoke_core::raw::sync::{Arc, Mutex};

/// Work that the test completes by hand, or that completes as stopped when it is asked to.
///
/// At most one sender of a gate may be running at a time.
pub struct Gate<V, E = Never>(Arc<Mutex<Waiting<V, E>>>);

struct Waiting<V, E> {
    /// The completion of the work that waits.
    work: Option<Completion<V, E>>,
    /// The reason why the work was asked to stop, if it was.
    asked: Option<StopReason>,
}

impl<V, E> Waiting<V, E> {
    /// Stores the completion of work that waits. Returns it if other work waits already.
    fn store(&mut self, work: Completion<V, E>) -> Result<(), Completion<V, E>> {
        if self.work.is_some() {
            return Err(work);
        }
        self.work = Some(work);
        Ok(())
    }
}

impl<V, E> Clone for Gate<V, E> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<V: Send, E: Send> Gate<V, E> {
    /// Creates a closed gate.
    pub fn new() -> Self {
        Self(Arc::new(Mutex::new(Waiting { work: None, asked: None })))
    }

    /// Returns work that waits at the gate.
    pub fn sender(&self) -> AtGate<V, E, ()> {
        self.holding(())
    }

    /// Returns work that waits at the gate, and whose operation contains `held`.
    pub fn holding<H: Send>(&self, held: H) -> AtGate<V, E, H> {
        AtGate { gate: self.clone(), _held: held, deaf: false }
    }

    /// Returns work that waits at the gate and ignores stop requests.
    pub fn deaf(&self) -> AtGate<V, E, ()> {
        AtGate { gate: self.clone(), _held: (), deaf: true }
    }

    /// Returns the reason why the work was asked to stop, if it was.
    pub fn asked_to_stop(&self) -> Option<StopReason> {
        self.0.lock().unwrap().asked
    }

    /// Returns true if work waits at the gate.
    pub fn is_waiting(&self) -> bool {
        self.0.lock().unwrap().work.is_some()
    }

    /// Completes the waiting work; returns false if there is none.
    pub fn complete(&self, outcome: Outcome<V, E>) -> bool {
        let work = self.0.lock().unwrap().work.take();
        work.map(|work| work.complete(outcome)).is_some()
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
    /// Dropped with the operation.
    _held: H,
    deaf: bool,
}

// SAFETY: rules 1 and 2 of `Sender`: `Pending` completes the receiver last; the callback is removed by then.
// Rule 3: `COMPLETES` is the default, `Anywhere`.
#[diagnostic::do_not_recommend]
unsafe impl<V: Send, E: Send, H: Send> Sender for AtGate<V, E, H> {
    type Value = V;
    type Error = E;
    type Operation<R: Receiver<V, E>> = GateOperation<V, E, H, R>;

    fn connect<R: Receiver<V, E>>(self, receiver: R) -> Self::Operation<R> {
        Pending::new(UntilOpened { work: self, _receiver: PhantomData }, receiver)
    }
}

/// The operation of [`AtGate`].
pub type GateOperation<V, E, H, R> = Pending<UntilOpened<V, E, H, R>>;

/// The wait at a [`Gate`].
pub struct UntilOpened<V, E, H, R> {
    work: AtGate<V, E, H>,
    _receiver: PhantomData<fn(R)>,
}

/// The stop callback: it completes the waiting work, if that has not completed yet.
pub struct StopAtGate<V, E>(Gate<V, E>);

impl<V: Send, E: Send> OnStop for StopAtGate<V, E> {
    fn on_stop(self, reason: StopReason) {
        self.0.0.lock().unwrap().asked = Some(reason);
        self.0.complete(Outcome::Stopped);
    }
}

impl<V: Send, E: Send, H: Send, R: Receiver<V, E>> Until for UntilOpened<V, E, H, R> {
    type Given = V;
    type GivenError = E;
    type Value = V;
    type Error = E;
    type Receiver = R;
    type Listening = Listening<StopAtGate<V, E>>;

    fn begin(self: Pin<&Self>, start: &Starting<'_, Self>, completion: Completion<V, E>) {
        let gate = &self.work.gate;
        let stored = gate.0.lock().unwrap().store(completion);
        match stored {
            Ok(()) if self.work.deaf => {}
            Ok(()) => start.listen(StopAtGate(gate.clone())),
            // `start` must not panic, and the work that waits already must not be lost.
            Err(second) => {
                second.complete(Outcome::Panicked(Panic::new("two operations wait at one gate")));
            }
        }
    }

    fn finish(self: Pin<&mut Self>, outcome: Outcome<V, E>) -> Outcome<V, E> {
        outcome
    }
}

impl<V, E, H, R> fmt::Debug for UntilOpened<V, E, H, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("UntilOpened")
    }
}

impl<V, E> fmt::Debug for StopAtGate<V, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("StopAtGate")
    }
}
