//! Awaiting a launched task: an operation that waits for work which runs already.

#![allow(unsafe_code)]

use core::cell::Cell;
use core::fmt;
use core::future::{Future, IntoFuture};
use core::marker::PhantomPinned;
use core::pin::Pin;
use core::ptr::NonNull;
use core::task::{Context, Poll};

use convoke_core::raw::sync::UnsafeCell;
use convoke_core::raw::{
    Adoptable, AdoptedFuture, AdoptedReceiver, Frame, FrameArc, OnComplete, OnStop, Operation, Polled,
    RawCallback, StartRendezvous, outside_a_task,
};
use convoke_core::{Never, Outcome, Panic, StopReason, StopSource};

use super::launched::Launched;
use super::root::{Root, Waiter};

impl<T: Send> Launched<T> {
    /// Connects it to a receiver, as an operation that waits for the launched task.
    #[doc(hidden)]
    pub fn connect<C: OnComplete<Outcome<T>>>(self, receiver: C) -> JoinOperation<T, C> {
        JoinOperation {
            launched: UnsafeCell::new(Some(self)),
            root: UnsafeCell::new(None),
            receiver: UnsafeCell::new(Some(receiver)),
            callback: UnsafeCell::new(None),
            rendezvous: StartRendezvous::new(),
            _pinned: PhantomPinned,
        }
    }
}

// SAFETY: the second to arrive at the rendezvous completes the receiver as its last step. The task has ended
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
    type IntoFuture = AwaitLaunched<T>;

    #[track_caller]
    fn into_future(self) -> AwaitLaunched<T> {
        let source = self.root().source.clone();
        AwaitLaunched { future: AdoptedFuture::new(self), source, stopped: Cell::new(false) }
    }
}

/// Future of an awaited [`Launched`].
#[must_use = "dropping it asks the launched task to stop; await it"]
pub struct AwaitLaunched<T: Send> {
    future: AdoptedFuture<Launched<T>>,
    /// The source of the launched task, for the reason of a stop.
    source: StopSource,
    stopped: Cell<bool>,
}

impl<T: Send + 'static> Future for AwaitLaunched<T> {
    type Output = T;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<T> {
        let Self { future, source, stopped } = &mut *self;
        Frame::current(|frame| {
            let Some(outer) = frame else { outside_a_task("a launched task") };
            match outer.same(stopped).poll(Pin::new(future), cx) {
                Polled::Ready(value) => Poll::Ready(value),
                Polled::Pending => Poll::Pending,
                Polled::Stopped => {
                    outer.stop_with(source.token().reason());
                    Poll::Pending
                }
            }
        })
    }
}

impl<T: Send> fmt::Debug for AwaitLaunched<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("AwaitLaunched").field(&self.future).finish()
    }
}

/// The operation of a [`Launched`]. The rules of which thread may touch which field:
///
/// 1. Two arrive at the rendezvous: `start`, as its last step; and the end of the launched task, through
///    `JoinWaits`, or `start` again if the task has ended by then.
/// 2. The second to arrive has every field to itself. Before that, every field belongs to `start`.
/// 3. The operation stays where it is, and alive, until both have arrived and its receiver is completed.
pub struct JoinOperation<T, R> {
    /// Set until `start`: an operation that is not started drops the `Launched`.
    launched: UnsafeCell<Option<Launched<T>>>,
    /// Set by `start`.
    root: UnsafeCell<Option<FrameArc<Root<T>>>>,
    receiver: UnsafeCell<Option<R>>,
    callback: UnsafeCell<Option<RawCallback<PassOn>>>,
    rendezvous: StartRendezvous,
    _pinned: PhantomPinned,
}

// SAFETY: rules 1 to 3 give each field to one thread at a time, and all of them are `Send`.
unsafe impl<T: Send, R: Send> Send for JoinOperation<T, R> {}

/// The right of the launched task to arrive at the rendezvous of the operation that waits for it, once.
pub(super) struct JoinWaits {
    operation: NonNull<()>,
    arrive: unsafe fn(NonNull<()>),
}

// SAFETY: it is used for one thing, `tell`, whose function does as rules 1 and 2 say on any thread; what is in the
// operation is `Send`: `JoinOperation` makes this for a `T` and an `R` that are.
unsafe impl Send for JoinWaits {}

impl JoinWaits {
    /// Arrives.
    pub(super) fn tell(self) {
        // SAFETY: rules 1 and 3: the operation, which made this for the end of the launched task, is alive
        // until that has arrived, here.
        unsafe { (self.arrive)(self.operation) };
    }
}

impl<T: Send, R: OnComplete<Outcome<T>>> Operation for JoinOperation<T, R> {
    unsafe fn start(self: Pin<&mut Self>) {
        // All fields are cells.
        let this = NonNull::from(&*self);
        // SAFETY: rule 2: the fields belong to `start` until it arrives at the rendezvous, which is its last
        // step. Rule 3: the operation is pinned, so the task may point to it. The environment of the receiver
        // outlives the callback, which is removed after the rendezvous.
        unsafe {
            let parts = this.as_ref();
            let (Some(launched), Some(receiver)) =
                ((*parts.launched.get()).take(), &*parts.receiver.get_const())
            else {
                return;
            };
            let root = (*parts.root.get()).insert(launched.into_root());
            let callback = (*parts.callback.get()).insert(RawCallback::new(PassOn(root.source.clone())));
            // If a stop was requested already, this runs callbacks of the launched task. `start` must not
            // unwind; the panic hook has reported a panic.
            let _ = Panic::catch(|| callback.register(receiver.env().stop()));
            let waits = JoinWaits { operation: this.cast(), arrive: Self::arrive };
            if root.wait(Waiter::Operation(waits)).is_none() {
                Self::arrive(this.cast());
            }
            Self::arrive(this.cast());
        }
    }
}

impl<T: Send, R: OnComplete<Outcome<T>>> JoinOperation<T, R> {
    /// Arrives at the rendezvous. The second to arrive takes the outcome and completes the receiver.
    ///
    /// # Safety
    /// Rule 1: called twice, and the operation is alive until then: rule 3.
    unsafe fn arrive(this: NonNull<()>) {
        // SAFETY: rule 3: the operation is alive. Rule 2: the second to arrive has it to itself.
        unsafe {
            let this = this.cast::<Self>().as_ref();
            if !this.rendezvous.arrive() {
                return;
            }
            *this.callback.get() = None;
            let (receiver, root) = ((*this.receiver.get()).take(), (*this.root.get()).take());
            if let (Some(receiver), Some(root)) = (receiver, root)
                && let Some(outcome) = root.take()
            {
                root.wait_until_unique();
                drop(root);
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
