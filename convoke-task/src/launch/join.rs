//! Awaiting a launched task: an operation that waits for work which runs already.

#![allow(unsafe_code)]

use core::fmt;
use core::future::IntoFuture;
use core::marker::PhantomPinned;
use core::pin::Pin;
use core::ptr::NonNull;

use convoke_core::raw::sync::UnsafeCell;
use convoke_core::raw::{
    Adoptable, AdoptedFuture, AdoptedReceiver, Handshake, OnComplete, OnStop, Operation, RawCallback,
};
use convoke_core::{Never, Outcome, Panic, StopReason, StopSource};

use super::launched::Launched;
use super::root::{Consumer, Waiter};

impl<T: Send> Launched<T> {
    /// Connects it to a receiver, as an operation that waits for the launched task.
    #[doc(hidden)]
    pub fn connect<C: OnComplete<Outcome<T>>>(self, receiver: C) -> JoinOperation<T, C> {
        JoinOperation {
            launched: UnsafeCell::new(Some(self)),
            receiver: UnsafeCell::new(Some(receiver)),
            outcome: UnsafeCell::new(None),
            callback: UnsafeCell::new(None),
            handshake: Handshake::new(),
            _pinned: PhantomPinned,
        }
    }
}

// SAFETY: the second to arrive at the handshake completes the receiver as its last step. The task has ended
// then, and the callback is removed.
unsafe impl<T: Send> Adoptable for Launched<T> {
    type Value = T;
    type Error = Never;
    type Operation = JoinOperation<T, AdoptedReceiver<T, Never>>;
    const NAME: &'static str = "a launched task";

    fn connect(self, receiver: AdoptedReceiver<T, Never>) -> Self::Operation {
        Launched::connect(self, receiver)
    }
}

impl<T: Send + 'static> IntoFuture for Launched<T> {
    type Output = T;
    type IntoFuture = AdoptedFuture<Self>;

    #[track_caller]
    fn into_future(self) -> AdoptedFuture<Self> {
        AdoptedFuture::new(self)
    }
}

/// The operation of a [`Launched`]. The rules of which thread may touch which field:
///
/// 1. `outcome` is written by the thread that ends the wait, before it arrives at the handshake: that on
///    which the launched task ends, or `start` if the task has ended already.
/// 2. `start` arrives there too, as its last step. The second to arrive has every field to itself.
/// 3. Before that, every other field belongs to `start`.
pub struct JoinOperation<T, R> {
    /// Set until `start`: an operation that is not started drops the `Launched`.
    launched: UnsafeCell<Option<Launched<T>>>,
    receiver: UnsafeCell<Option<R>>,
    outcome: UnsafeCell<Option<Outcome<T>>>,
    callback: UnsafeCell<Option<RawCallback<PassOn>>>,
    handshake: Handshake,
    _pinned: PhantomPinned,
}

// SAFETY: rules 1 to 3 give each field to one thread at a time, and all of them are `Send`.
unsafe impl<T: Send, R: Send> Send for JoinOperation<T, R> {}

impl<T: Send, R: OnComplete<Outcome<T>>> Operation for JoinOperation<T, R> {
    unsafe fn start(self: Pin<&mut Self>) {
        // SAFETY: the operation is not moved out of the pin.
        let this = NonNull::from(unsafe { self.get_unchecked_mut() });
        // SAFETY: rule 3: the fields belong to `start` until it arrives at the handshake, which is its last
        // step. The operation is pinned, so the task may point to it. The environment of the receiver
        // outlives the callback, which is removed after the handshake.
        unsafe {
            let parts = this.as_ref();
            let (Some(launched), Some(receiver)) =
                ((*parts.launched.get()).take(), &*parts.receiver.get_const())
            else {
                return;
            };
            let root = launched.into_root();
            let callback = (*parts.callback.get()).insert(RawCallback::new(PassOn(root.source.clone())));
            // If a stop was requested already, this runs callbacks of the launched task. `start` must not
            // unwind; the panic hook has reported a panic.
            let _ = Panic::catch(|| callback.register(receiver.env().stop()));
            let consumer = Consumer { operation: this.cast(), end: Self::end };
            if let Ok((outcome, _)) = root.take_or_wait(Waiter::Operation(consumer)) {
                Self::end(this.cast(), outcome);
            }
            drop(root);
            Self::arrive(this);
        }
    }
}

impl<T: Send, R: OnComplete<Outcome<T>>> JoinOperation<T, R> {
    /// Ends the wait with this outcome.
    ///
    /// # Safety
    /// Called once, and the operation is alive: rule 1.
    unsafe fn end(this: NonNull<()>, outcome: Outcome<T>) {
        let this = this.cast::<Self>();
        // SAFETY: rule 1. The operation is not touched after the handshake, unless `arrive` finds this thread
        // the second.
        unsafe {
            *this.as_ref().outcome.get() = Some(outcome);
            Self::arrive(this);
        }
    }

    /// Arrives at the handshake. The second to arrive completes the receiver.
    ///
    /// # Safety
    /// Called once by `start` and once by `end`.
    unsafe fn arrive(this: NonNull<Self>) {
        // SAFETY: the operation is alive until both have arrived. Rule 2: the second to arrive has it to
        // itself.
        unsafe {
            let this = this.as_ref();
            if !this.handshake.arrive() {
                return;
            }
            *this.callback.get() = None;
            if let (Some(receiver), Some(outcome)) =
                ((*this.receiver.get()).take(), (*this.outcome.get()).take())
            {
                receiver.complete(outcome);
            }
        }
    }
}

/// A stop callback that passes the request of the waiting side on to the launched task.
struct PassOn(StopSource);

impl OnStop for PassOn {
    fn on_stop(self, reason: StopReason) {
        self.0.request_stop(reason);
    }
}

impl<T, R> fmt::Debug for JoinOperation<T, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JoinOperation").finish_non_exhaustive()
    }
}
