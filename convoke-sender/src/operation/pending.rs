//! An operation that waits for an outcome from outside: another thread, a stop request, the end of other
//! work. Senders describe how the wait begins and ends in safe code ([`Until`]); the [`Completion`] that is
//! handed out is the right to end it.

#![allow(unsafe_code)]

use core::fmt;
use core::marker::PhantomPinned;
use core::mem::ManuallyDrop;
use core::pin::Pin;
use core::ptr::NonNull;

use crate::Receiver;
use convoke_core::raw::sync::UnsafeCell;
use convoke_core::raw::{OnStop, Operation, RawCallback, StartRendezvous};
use convoke_core::{Env, Never, Outcome, StopToken};

/// The beginning and the end of a wait, and the parts of the operation that they use.
pub trait Until: Sized + Send {
    /// The value that ends the wait.
    type Given;
    /// The error that ends the wait.
    type GivenError;
    /// The value that the operation completes with.
    type Value;
    /// The error that the operation fails with.
    type Error;
    /// The receiver of the operation.
    type Receiver: Receiver<Self::Value, Self::Error>;
    /// The stop callback: a [`Listening`], or `()` if there is none.
    type Listening: Default + Send;

    /// Begins the wait. The completion may be used before this returns, on any thread. Must not panic.
    fn begin(
        self: Pin<&Self>,
        start: &Starting<'_, Self>,
        completion: Completion<Self::Given, Self::GivenError>,
    );

    /// Returns the outcome of the operation, from the one that ended the wait. Called when `begin` has
    /// returned and the stop callback is removed.
    fn finish(
        self: Pin<&mut Self>,
        outcome: Outcome<Self::Given, Self::GivenError>,
    ) -> Outcome<Self::Value, Self::Error>;
}

/// An operation that waits for its [`Completion`].
///
/// 1. There is one completion. `start`, which is called once, makes it. Its end writes `outcome`, once.
/// 2. `start` and the end of the completion arrive at the rendezvous, each as its last step. Until both have
///    arrived the operation is alive and pinned, and `wait` and `receiver` are read and not moved. Only
///    `start` uses `listening`.
/// 3. The second to arrive is the only user of everything, and completes the receiver.
#[repr(C)]
pub struct Pending<W: Until> {
    // First, so that a pointer to it is a pointer to the operation.
    core: Core<W::Given, W::GivenError>,
    wait: UnsafeCell<W>,
    listening: UnsafeCell<W::Listening>,
    receiver: UnsafeCell<Option<W::Receiver>>,
    _pinned: PhantomPinned,
}

/// The part of the operation that the completion knows.
struct Core<V, E> {
    rendezvous: StartRendezvous,
    outcome: UnsafeCell<Option<Outcome<V, E>>>,
    env: unsafe fn(NonNull<Self>) -> NonNull<Env>,
    finish: unsafe fn(NonNull<Self>),
}

// SAFETY: rules 1 to 3 give each part to one thread at a time. The outcome may be carried from one thread to
// another only if value and error are `Send`: `Completion` is not `Send` otherwise.
unsafe impl<W: Until> Send for Pending<W> {}
// SAFETY: rules 1 to 3 give each part to one thread at a time.
unsafe impl<W: Until> Sync for Pending<W> {}

impl<W: Until> Pending<W> {
    /// Creates an operation that has not started.
    #[inline]
    pub fn new(wait: W, receiver: W::Receiver) -> Self {
        Self {
            core: Core {
                rendezvous: StartRendezvous::new(),
                outcome: UnsafeCell::new(None),
                env: Self::env,
                finish: Self::finish,
            },
            wait: UnsafeCell::new(wait),
            listening: UnsafeCell::new(W::Listening::default()),
            receiver: UnsafeCell::new(Some(receiver)),
            _pinned: PhantomPinned,
        }
    }

    /// Returns the receiver.
    ///
    /// # Safety
    /// The caller is `start` or the holder of the completion, and has not arrived (rule 2).
    #[inline]
    unsafe fn receiver(&self) -> &W::Receiver {
        // SAFETY: rule 2: the caller has not arrived, so the receiver is not moved.
        let receiver = unsafe { &*self.receiver.get_const() };
        receiver.as_ref().expect("the receiver is taken when both have arrived")
    }

    /// Returns the environment of the receiver.
    ///
    /// # Safety
    /// Called by the holder of the completion, with the first field of the operation.
    unsafe fn env(core: NonNull<Core<W::Given, W::GivenError>>) -> NonNull<Env> {
        // SAFETY: `core` is the first field of the operation (`repr(C)`), and the pointer was made from the
        // whole operation. Rule 2: the completion has not ended, so the operation is alive.
        NonNull::from(unsafe { core.cast::<Self>().as_ref().receiver() }.env())
    }

    /// Completes the receiver.
    ///
    /// # Safety
    /// Called by the second to arrive (rule 3), with the first field of the operation.
    unsafe fn finish(core: NonNull<Core<W::Given, W::GivenError>>) {
        // SAFETY: `core` is the first field of the operation (`repr(C)`), and the pointer was made from the
        // whole operation. Rule 3: the caller is the only user. Rule 2: the operation is pinned, and `wait`
        // with it. A callback may be dropped from inside itself, or after it has run.
        let (wait, receiver, outcome) = unsafe {
            let this = core.cast::<Self>().as_ref();
            *this.listening.get() = W::Listening::default();
            let wait = Pin::new_unchecked(&mut *this.wait.get());
            (wait, (*this.receiver.get()).take(), (*this.core.outcome.get()).take())
        };
        if let (Some(receiver), Some(outcome)) = (receiver, outcome) {
            let outcome = wait.finish(outcome);
            receiver.complete(outcome);
        }
    }
}

impl<V, E> Core<V, E> {
    /// Arrives at the rendezvous; the second to arrive finishes the operation.
    ///
    /// # Safety
    /// Called once by `start` and once by the end of the completion. Neither touches anything afterwards
    /// (rule 2).
    unsafe fn arrive(this: NonNull<Self>) {
        // SAFETY: rule 2: the operation is alive until both have arrived; rule 3 for the second.
        unsafe {
            if this.as_ref().rendezvous.arrive() {
                (this.as_ref().finish)(this);
            }
        }
    }
}

impl<W: Until> Operation for Pending<W> {
    unsafe fn start(self: Pin<&mut Self>) {
        let this = self.as_ref().get_ref();
        let core = NonNull::from(this).cast::<Core<W::Given, W::GivenError>>();
        // SAFETY: rule 2: `start` has not arrived, so both are read and not moved, and pinned with `self`.
        let (wait, receiver) = unsafe { (Pin::new_unchecked(&*this.wait.get_const()), this.receiver()) };
        wait.begin(&Starting { operation: this, receiver }, Completion { core });
        // SAFETY: rule 2: `start` arrives, once, and this is its last step.
        unsafe { Core::arrive(core) };
    }
}

/// A wait that begins: what [`Until::begin`] may use of the operation.
pub struct Starting<'a, W: Until> {
    operation: &'a Pending<W>,
    receiver: &'a W::Receiver,
}

impl<W: Until> Starting<'_, W> {
    /// Returns the environment of the receiver.
    #[inline]
    pub fn env(&self) -> &Env {
        self.receiver.env()
    }
}

/// A registered stop callback.
pub struct Listening<C>(Option<RawCallback<C>>);

impl<C> Default for Listening<C> {
    fn default() -> Self {
        Self(None)
    }
}

impl<W: Until<Listening = Listening<C>>, C: OnStop> Starting<'_, W> {
    /// Registers the stop callback. If a stop was requested already, it runs now. Called at most once.
    pub fn listen(&self, call: C) {
        // SAFETY: rule 2: this is `start`, the only user of `listening` until it arrives.
        let listening = unsafe { &mut *self.operation.listening.get() };
        if listening.0.is_none() {
            // SAFETY: the operation is pinned, and the second to arrive removes the callback. The environment
            // of the receiver lives until the receiver is completed, which comes after that.
            unsafe { listening.0.insert(RawCallback::new(call)).register(self.env().stop()) };
        }
    }
}

/// A handle that completes a piece of work, once. It may be moved to any thread; dropping it completes the
/// work as stopped.
///
/// It is one pointer, into the operation, which lives until the handle has ended.
#[must_use = "dropping a completion completes its work as stopped"]
pub struct Completion<V, E = Never> {
    core: NonNull<Core<V, E>>,
}

// SAFETY: rules 1 and 2 of `Pending` say what the handle may use. The outcome may be carried to another
// thread, because V and E are `Send`.
unsafe impl<V: Send, E: Send> Send for Completion<V, E> {}

impl<V, E> Completion<V, E> {
    /// Completes the work with `outcome`.
    #[inline]
    pub fn complete(self, outcome: Outcome<V, E>) {
        // Its `Drop` does not run, so `end` is called once.
        ManuallyDrop::new(self).end(outcome);
    }

    /// Completes the work with a value.
    pub fn value(self, value: V) {
        self.complete(Outcome::Value(value));
    }

    /// Completes the work with an error.
    pub fn error(self, error: E) {
        self.complete(Outcome::Error(error));
    }

    /// Completes the work as stopped.
    pub fn stopped(self) {
        self.complete(Outcome::Stopped);
    }

    /// Returns the stop token of the work, to store.
    pub fn stop_token(&self) -> StopToken {
        self.env().stop_token()
    }

    /// Returns true if the work was asked to stop.
    pub fn stop_requested(&self) -> bool {
        self.env().stop().stop_requested()
    }

    fn env(&self) -> &Env {
        // SAFETY: rule 2 of `Pending`: the handle has not ended, so the operation is alive and its receiver
        // is not moved.
        unsafe { (self.core.as_ref().env)(self.core).as_ref() }
    }

    /// Ends the wait. Called once: by `complete`, after which `drop` does not run, or by `drop`.
    fn end(&mut self, outcome: Outcome<V, E>) {
        // SAFETY: rule 1 of `Pending`: this is the end of the only completion, so the outcome is ours to
        // write. Rule 2: the operation is alive until we arrive, which is the last step.
        unsafe {
            *self.core.as_ref().outcome.get() = Some(outcome);
            Core::arrive(self.core);
        }
    }
}

impl<V, E> Drop for Completion<V, E> {
    fn drop(&mut self) {
        self.end(Outcome::Stopped);
    }
}

impl<V, E> fmt::Debug for Completion<V, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Completion")
    }
}

impl<W: Until> fmt::Debug for Pending<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pending").finish_non_exhaustive()
    }
}

impl<W: Until> fmt::Debug for Starting<'_, W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Starting").finish_non_exhaustive()
    }
}

impl<C> fmt::Debug for Listening<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Listening").field(&self.0.is_some()).finish()
    }
}
