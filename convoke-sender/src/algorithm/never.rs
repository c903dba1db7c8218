//! `never()`: completes only when it is stopped.

#![allow(unsafe_code)]

use core::fmt;
use core::marker::PhantomData;
use core::marker::PhantomPinned;
use core::pin::Pin;
use core::ptr::NonNull;

use crate::operation::Handshake;
use crate::{Receiver, Sender};
use convoke_core::raw::Operation;
use convoke_core::raw::{OnStop, RawCallback};
use convoke_core::stop::StopReason;
use convoke_core::{Never, Outcome};

/// Makes a sender that completes only when a stop is requested. In an environment that cannot stop it never
/// completes.
///
/// - *Completes with* stopped; never with a value, never with an error.
/// - *If dropped* before it starts, nothing happens.
/// - *Runs on* the thread that requests the stop.
///
/// ```
/// use convoke::sender::prelude::*;
///
/// let first = when_any((never::<u32>(), just(7)));
/// assert_eq!(sync_wait(first), Outcome::Value(7));
/// ```
pub fn never<V>() -> NeverSender<V> {
    NeverSender(PhantomData)
}

/// The sender of [`never()`].
#[must_use = "a sender does nothing until it is started"]
pub struct NeverSender<V>(PhantomData<fn() -> V>);

impl<V> fmt::Debug for NeverSender<V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("never()")
    }
}

// SAFETY: rules 1 and 2 of `Sender`: the second to arrive at the rendezvous completes the receiver last, when
// `start` has registered and the callback has run. Rule 3: `COMPLETES` is the default, `Anywhere`.
#[diagnostic::do_not_recommend]
unsafe impl<V> Sender for NeverSender<V> {
    type Value = V;
    type Error = Never;
    type Operation<R: Receiver<V, Never>> = NeverOperation<V, R>;

    fn connect<R: Receiver<V, Never>>(self, receiver: R) -> NeverOperation<V, R> {
        NeverOperation {
            receiver: Some(receiver),
            callback: None,
            rendezvous: Handshake::new(),
            _value: PhantomData,
            _pinned: PhantomPinned,
        }
    }
}

/// The operation of [`never()`].
///
/// 1. `start` writes `callback`, and reads `receiver`, before it arrives at the rendezvous.
/// 2. The second to arrive, `start` or the callback, is the only user, and completes the receiver.
#[derive(Debug)]
pub struct NeverOperation<V, R> {
    receiver: Option<R>,
    callback: Option<RawCallback<Stop<V, R>>>,
    /// The stop request may come, on another thread, while `start` still registers the callback.
    rendezvous: Handshake,
    _value: PhantomData<fn() -> V>,
    _pinned: PhantomPinned,
}

/// The stop callback: a pointer to the operation.
#[derive(Debug)]
struct Stop<V, R>(NonNull<NeverOperation<V, R>>);

// SAFETY: the operation is `Send`, and the callback uses it only by rule 2.
unsafe impl<V, R: Send> Send for Stop<V, R> {}

impl<V, R: Receiver<V, Never>> OnStop for Stop<V, R> {
    fn on_stop(self, _: StopReason) {
        // SAFETY: the operation is alive until its receiver is completed, for which both must have arrived.
        unsafe { NeverOperation::arrive(self.0) };
    }
}

impl<V, R: Receiver<V, Never>> Operation for NeverOperation<V, R> {
    unsafe fn start(self: Pin<&mut Self>) {
        // SAFETY: only the receiver is moved out, and it is not structurally pinned.
        let this = NonNull::from(unsafe { self.get_unchecked_mut() });
        // SAFETY: rule 1. The operation is pinned until the receiver is completed, and the environment
        // outlives it. Nothing is touched after `arrive`.
        unsafe {
            let callback = (*this.as_ptr()).callback.insert(RawCallback::new(Stop(this)));
            if let Some(receiver) = &this.as_ref().receiver {
                callback.register(receiver.env().stop());
            }
            Self::arrive(this);
        }
    }
}

impl<V, R: Receiver<V, Never>> NeverOperation<V, R> {
    /// Arrives at the rendezvous; the second to arrive completes the receiver.
    ///
    /// # Safety
    /// Called once by `start`, after registering, and once by the callback. Neither touches anything afterwards.
    unsafe fn arrive(this: NonNull<Self>) {
        // SAFETY: the operation is alive until both have arrived. Rule 2 for the second. A callback may be
        // dropped from inside itself, or after it has run.
        unsafe {
            if this.as_ref().rendezvous.arrive() {
                let this = &mut *this.as_ptr();
                this.callback = None;
                if let Some(receiver) = this.receiver.take() {
                    receiver.complete(Outcome::Stopped);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::prelude::*;
    use crate::testing::{Connected, stopped_env};

    #[test]
    fn completes_as_stopped_before_and_after_the_start() {
        assert_eq!(Connected::with_env(never::<i32>(), stopped_env()).start().outcome(), Outcome::Stopped);
        let source = StopSource::new();
        let running = Connected::stoppable(never::<i32>(), &source).start();
        assert!(!running.is_complete());
        source.request_stop(StopReason::Requested);
        assert_eq!(running.outcome(), Outcome::Stopped);
    }

    #[test]
    fn dropping_it_unstarted_is_nothing() {
        drop(Connected::new(never::<i32>()));
    }
}
