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

/// A sender that completes only when a stop is requested.
///
/// - *Completes with* stopped; never with a value, never with an error.
/// - *If dropped* before it was started, nothing.
/// - *Runs on* the thread that requests the stop.
///
/// In an environment that cannot stop it never completes.
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

/// See [`never()`].
#[must_use = "a sender does nothing until it is started"]
pub struct NeverSender<V>(PhantomData<fn() -> V>);

impl<V> fmt::Debug for NeverSender<V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("never()")
    }
}

// SAFETY: the second to come to the meeting completes the receiver, as the last thing he does.
#[diagnostic::do_not_recommend]
unsafe impl<V> Sender for NeverSender<V> {
    type Value = V;
    type Error = Never;
    type Operation<R: Receiver<V, Never>> = NeverOperation<V, R>;

    fn connect<R: Receiver<V, Never>>(self, receiver: R) -> NeverOperation<V, R> {
        NeverOperation {
            receiver: Some(receiver),
            callback: None,
            registered: Handshake::new(),
            _value: PhantomData,
            _pinned: PhantomPinned,
        }
    }
}

/// The operation of [`never()`].
#[derive(Debug)]
pub struct NeverOperation<V, R> {
    receiver: Option<R>,
    callback: Option<RawCallback<Stop<V, R>>>,
    /// The request may come, on another thread, while we are still registering.
    registered: Handshake,
    _value: PhantomData<fn() -> V>,
    _pinned: PhantomPinned,
}

/// The callback: it leads back to the operation.
#[derive(Debug)]
struct Stop<V, R>(NonNull<NeverOperation<V, R>>);

// SAFETY: the operation is `Send`, and the callback is what uses it when it runs.
unsafe impl<V, R: Send> Send for Stop<V, R> {}

impl<V, R: Receiver<V, Never>> OnStop for Stop<V, R> {
    fn on_stop(self, _: StopReason) {
        // SAFETY: the operation is alive until its receiver was completed, and only we or `start` do that.
        unsafe { NeverOperation::meet(self.0) };
    }
}

impl<V, R: Receiver<V, Never>> Operation for NeverOperation<V, R> {
    unsafe fn start(self: Pin<&mut Self>) {
        // SAFETY: nothing is moved out of its place but the receiver, which is not structurally pinned.
        let this = NonNull::from(unsafe { self.get_unchecked_mut() });
        // SAFETY: we are pinned until the receiver was completed, and its environment outlives us. After the last
        // line nothing is touched.
        unsafe {
            let callback = (*this.as_ptr()).callback.insert(RawCallback::new(Stop(this)));
            if let Some(receiver) = &this.as_ref().receiver {
                callback.register(receiver.env().stop());
            }
            Self::meet(this);
        }
    }
}

impl<V, R: Receiver<V, Never>> NeverOperation<V, R> {
    /// # Safety
    /// Called once by `start`, after registering, and once by the callback.
    unsafe fn meet(this: NonNull<Self>) {
        // SAFETY: the first leaves; the second is alone with the operation. Dropping the callback from inside itself,
        // or after it has run, is what it allows.
        unsafe {
            if this.as_ref().registered.arrive() {
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
