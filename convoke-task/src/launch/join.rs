//! Awaiting a launched chain: an operation that waits for work which runs already.

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
    /// Connects it to a receiver, as an operation that waits for the chain.
    #[doc(hidden)]
    pub fn connect<C: OnComplete<Outcome<T>>>(self, receiver: C) -> JoinOperation<T, C> {
        JoinOperation {
            launched: UnsafeCell::new(Some(self)),
            receiver: UnsafeCell::new(Some(receiver)),
            outcome: UnsafeCell::new(None),
            callback: UnsafeCell::new(None),
            met: Handshake::new(),
            _pinned: PhantomPinned,
        }
    }
}

// SAFETY: the second to arrive at the handshake completes the receiver, as the last thing it does; the chain has ended then, and
// the callback is removed.
unsafe impl<T: Send> Adoptable for Launched<T> {
    type Value = T;
    type Error = Never;
    type Operation = JoinOperation<T, AdoptedReceiver<T, Never>>;
    const NAME: &'static str = "a launched chain";

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

/// The operation of a [`Launched`].
///
/// 1. Whoever ends the wait writes `outcome`, and then comes to the meeting: the chain, or `start` if it has ended already.
/// 2. `start` comes there too, when it is done. The second of the two is alone with everything.
/// 3. Before that, all else is used by `start` alone.
pub struct JoinOperation<T, R> {
    /// Until the start: dropping it is dropping the `Launched`.
    launched: UnsafeCell<Option<Launched<T>>>,
    receiver: UnsafeCell<Option<R>>,
    outcome: UnsafeCell<Option<Outcome<T>>>,
    callback: UnsafeCell<Option<RawCallback<PassOn>>>,
    met: Handshake,
    _pinned: PhantomPinned,
}

// SAFETY: the rules give each part to one thread at a time, and all of them are `Send`.
unsafe impl<T: Send, R: Send> Send for JoinOperation<T, R> {}

impl<T: Send, R: OnComplete<Outcome<T>>> Operation for JoinOperation<T, R> {
    unsafe fn start(self: Pin<&mut Self>) {
        // SAFETY: the operation is not moved.
        let this = NonNull::from(unsafe { self.get_unchecked_mut() });
        // SAFETY: rule 3: all is ours until the meeting, to which we come last of all. We are pinned, so the chain may point
        // to us; the environment of the receiver outlives the callback, which is removed at the meeting.
        unsafe {
            let parts = this.as_ref();
            let (Some(launched), Some(receiver)) =
                ((*parts.launched.get()).take(), &*parts.receiver.get_const())
            else {
                return;
            };
            let root = launched.into_root();
            let callback = (*parts.callback.get()).insert(RawCallback::new(PassOn(root.source.clone())));
            // If a stop was requested already, it runs callbacks of the chain. A start does not unwind; the hook has told.
            let _ = Panic::catch(|| callback.register(receiver.env().stop()));
            let consumer = Consumer { operation: this.cast(), end: Self::end };
            if let Ok((outcome, _)) = root.take_or_wait(Waiter::Operation(consumer)) {
                Self::end(this.cast(), outcome);
            }
            drop(root);
            Self::meet(this);
        }
    }
}

impl<T: Send, R: OnComplete<Outcome<T>>> JoinOperation<T, R> {
    /// # Safety
    /// Rule 1: called once, with a live operation.
    unsafe fn end(this: NonNull<()>, outcome: Outcome<T>) {
        let this = this.cast::<Self>();
        // SAFETY: rule 1; nothing is touched after the meeting unless we are the second.
        unsafe {
            *this.as_ref().outcome.get() = Some(outcome);
            Self::meet(this);
        }
    }

    /// # Safety
    /// Called once by `start` and once by `end`.
    unsafe fn meet(this: NonNull<Self>) {
        // SAFETY: rule 2: the second is alone.
        unsafe {
            let this = this.as_ref();
            if !this.met.arrive() {
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

/// A stop request of who waits goes on to the chain.
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
