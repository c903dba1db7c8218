//! `spawn_future`: starts work whose result may be used later.

#![allow(unsafe_code)]

use core::fmt;
use core::marker::PhantomPinned;
use core::mem::ManuallyDrop;
use core::pin::Pin;
use core::ptr::{self, NonNull};

use crate::{Receiver, Sender};
use convoke_core::raw::Operation;
use convoke_core::raw::sync::Arc;
use convoke_core::raw::sync::UnsafeCell;
use convoke_core::raw::{Handshake, OnStop, RawCallback};
use convoke_core::{Env, Never, Outcome, Panic, StopReason};

use super::block::Counted;
use super::name::Name;
use super::result::{Consumer, ResultRef, StoredResult};
use super::shared::Shared;
use super::spawn::SpawnError;

pub(super) fn spawn_future<S>(
    shared: &Arc<Shared>,
    name: Name,
    sender: S,
    env: &Env,
) -> Result<SpawnFuture<S::Value, S::Error>, SpawnError<S>>
where
    S: Sender<Value: Send, Error: Send> + 'static,
{
    let Some(association) = Shared::enter(shared, name) else {
        return Err(SpawnError::closed(sender));
    };
    let stored = StoredResult::new(shared.clone(), name);
    match Counted::<S, _>::new(env, &shared.stop.token(), association, stored) {
        Ok(block) => {
            let future = SpawnFuture { result: ResultRef::new(block.clone()) };
            block.start(sender);
            Ok(future)
        }
        Err(_) => Err(SpawnError::no_memory(sender)),
    }
}

/// The result of work that has started already: a sender, made by
/// [`spawn_future`](super::ScopeHandle::spawn_future).
///
/// - *Completes with* the outcome of the work. If it is itself asked to stop before the work has completed,
///   it asks the work to stop; it then completes with the outcome if that comes at once, and else as stopped,
///   without waiting: the scope waits for the work.
/// - *If dropped* unused, or if its operation is dropped unstarted, the work is asked to stop
///   ([`StopReason::Abandoned`]) and its result is dropped. A panic of the work goes to the scope then.
/// - *Runs on* the thread on which the work completes; if that has completed already, on the thread that
///   starts this; if stopped, on the thread that requests the stop. Use `continues_on` or `affine_on` to
///   continue on another executor.
#[must_use = "dropping it asks the work to stop: if the result is not wanted, use `spawn`"]
pub struct SpawnFuture<V: Send + 'static, E: Send + 'static = Never> {
    result: ResultRef<V, E>,
}

impl<V: Send, E: Send> SpawnFuture<V, E> {
    /// Returns the pointer, without abandoning the result.
    fn into_result(self) -> ResultRef<V, E> {
        let this = ManuallyDrop::new(self);
        // SAFETY: it is the only field, of a value that is never dropped.
        unsafe { ptr::read(&this.result) }
    }
}

impl<V: Send, E: Send> Drop for SpawnFuture<V, E> {
    fn drop(&mut self) {
        // SAFETY: called once, and not after `consume`: a future that is consumed is not dropped, see
        // `into_result`.
        unsafe { self.result.abandon() };
    }
}

// SAFETY: rules 1 and 2 of `Sender`: the second to arrive at the rendezvous completes the receiver last; the
// wait has ended and the callback is removed by then. Rule 3: `COMPLETES` is the default, `Anywhere`.
#[diagnostic::do_not_recommend]
unsafe impl<V: Send, E: Send> Sender for SpawnFuture<V, E> {
    type Value = V;
    type Error = E;
    type Operation<R: Receiver<V, E>> = FutureOperation<V, E, R>;

    fn connect<R: Receiver<V, E>>(self, receiver: R) -> FutureOperation<V, E, R> {
        FutureOperation {
            future: UnsafeCell::new(Some(self)),
            result: UnsafeCell::new(None),
            receiver: UnsafeCell::new(Some(receiver)),
            outcome: UnsafeCell::new(None),
            callback: UnsafeCell::new(None),
            rendezvous: Handshake::new(),
            _pinned: PhantomPinned,
        }
    }
}

/// The bounds of the parts of a result, as one path for `awaitable!`.
trait Sent: Send + 'static {}

impl<T: Send + 'static> Sent for T {}

crate::awaitable!([V: Sent, E: Sent] SpawnFuture<V, E>);

/// The operation of [`SpawnFuture`].
///
/// 1. The thread that ends the wait is the only one that writes `outcome`, and then it arrives at the
///    rendezvous. It is the work that delivers, `start` if there is nothing to wait for, or the consumer's
///    stop request if that could leave.
/// 2. `start` arrives there too, as its last step. The second to arrive is the only user of everything.
/// 3. Before that, only `start` uses all else.
pub struct FutureOperation<V: Send + 'static, E: Send + 'static, R> {
    /// Set until the start: dropping it abandons the result.
    future: UnsafeCell<Option<SpawnFuture<V, E>>>,
    /// Set from the start on.
    result: UnsafeCell<Option<ResultRef<V, E>>>,
    receiver: UnsafeCell<Option<R>>,
    outcome: UnsafeCell<Option<Outcome<V, E>>>,
    callback: UnsafeCell<Option<RawCallback<Leave<V, E>>>>,
    rendezvous: Handshake,
    _pinned: PhantomPinned,
}

// SAFETY: rules 1 to 3 give each part to one thread at a time, and all of them are `Send`.
unsafe impl<V: Send, E: Send, R: Send> Send for FutureOperation<V, E, R> {}
// SAFETY: rules 1 to 3 give each part to one thread at a time, and all of them are `Send`.
unsafe impl<V: Send, E: Send, R: Send> Sync for FutureOperation<V, E, R> {}

impl<V: Send, E: Send, R: Receiver<V, E>> Operation for FutureOperation<V, E, R> {
    unsafe fn start(self: Pin<&mut Self>) {
        let this = NonNull::from(self.as_ref().get_ref());
        // SAFETY: rule 3: everything is ours until `arrive`, which is last. The operation is pinned, so the
        // work may point to it. The environment of the receiver outlives the callback, which the second to
        // arrive removes.
        unsafe {
            let parts = this.as_ref();
            let (Some(future), Some(receiver)) = ((*parts.future.get()).take(), &*parts.receiver.get_const())
            else {
                return;
            };
            let result = (*parts.result.get()).insert(future.into_result());
            match result.consume(Consumer { operation: this.cast(), end: Self::end }) {
                Some(outcome) => Self::end(this.cast(), outcome),
                None => {
                    let leave = Leave { result: result.clone(), operation: this.cast(), end: Self::end };
                    let callback = (*parts.callback.get()).insert(RawCallback::new(leave));
                    // Caught: if a stop was requested already, this runs the stop callbacks of the work, and
                    // `start` must not unwind.
                    if let Err(panic) = Panic::catch(|| callback.register(receiver.env().stop())) {
                        result.panicked(panic);
                    }
                }
            }
            Self::arrive(this);
        }
    }
}

impl<V: Send, E: Send, R: Receiver<V, E>> FutureOperation<V, E, R> {
    /// Stores the outcome and arrives.
    ///
    /// # Safety
    /// Called once, with a live operation, by the thread that ends the wait (rule 1).
    unsafe fn end(this: NonNull<()>, outcome: Outcome<V, E>) {
        let this = this.cast::<Self>();
        // SAFETY: rule 1: the outcome is ours to write; the operation is alive until both have arrived.
        unsafe {
            *this.as_ref().outcome.get() = Some(outcome);
            Self::arrive(this);
        }
    }

    /// Arrives at the rendezvous; the second to arrive completes the receiver.
    ///
    /// # Safety
    /// Called once by `start` and once by `end`. Neither touches anything afterwards.
    unsafe fn arrive(this: NonNull<Self>) {
        // SAFETY: the operation is alive until both have arrived; rule 2: the second is the only user.
        unsafe {
            let this = this.as_ref();
            if !this.rendezvous.arrive() {
                return;
            }
            *this.callback.get() = None;
            drop((*this.result.get()).take());
            if let (Some(receiver), Some(outcome)) =
                ((*this.receiver.get()).take(), (*this.outcome.get()).take())
            {
                receiver.complete(outcome);
            }
        }
    }
}

/// The stop callback of the consumer: it passes the request on to the work, and the consumer leaves, unless
/// the work delivers.
struct Leave<V: 'static, E: 'static> {
    /// Its own count: the work that the request completes may end the consumer, and free this callback with
    /// it.
    result: ResultRef<V, E>,
    operation: NonNull<()>,
    end: unsafe fn(NonNull<()>, Outcome<V, E>),
}

// SAFETY: the address is used only by the thread that has ended the wait, and rule 1 gives the outcome to it.
unsafe impl<V: Send, E: Send> Send for Leave<V, E> {}

impl<V: Send, E: Send> OnStop for Leave<V, E> {
    fn on_stop(self, reason: StopReason) {
        let stopped = self.result.request_stop(reason);
        if self.result.leave() {
            // SAFETY: rule 1 of the operation: `leave` returned true, so the work does not deliver any more.
            unsafe { (self.end)(self.operation, Outcome::Stopped) };
        }
        if let Err(panic) = stopped {
            panic.resume();
        }
    }
}

impl<V: Send, E: Send> fmt::Debug for SpawnFuture<V, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SpawnFuture")
    }
}

impl<V: Send, E: Send, R> fmt::Debug for FutureOperation<V, E, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("FutureOperation")
    }
}
