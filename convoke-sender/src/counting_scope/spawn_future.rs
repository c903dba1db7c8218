//! `spawn_future`: starts work whose result is asked for later, or not at all.

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
use super::result::{Kept, Place, ResultRef};
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
    let kept = Kept::new(shared.clone(), name);
    match Counted::<S, _>::new(env, &shared.stop.token(), association, kept) {
        Ok(block) => {
            let future = SpawnFuture { result: ResultRef::new(block.clone()) };
            block.start(sender);
            Ok(future)
        }
        Err(_) => Err(SpawnError::no_memory(sender)),
    }
}

/// The result of work that runs already: a sender, made by [`spawn_future`](super::ScopeHandle::spawn_future).
///
/// - *Completes with* the outcome of the work, through whichever door. If it is itself asked to stop before the work has
///   completed, it asks the work to stop; it then completes with the outcome if that came at once, and else as stopped,
///   without waiting: the scope does that.
/// - *If dropped* unused, or if its operation is dropped unstarted, the work is asked to stop
///   ([`StopReason::Abandoned`]) and its result dropped. A panic of the work goes to the scope then.
/// - *Runs on* what the work completes on; if it has completed already, on the thread that starts this; if stopped, on
///   the thread that makes the request. To go on elsewhere use `continues_on` or `affine_on`.
#[must_use = "dropping it asks the work to stop: if nobody wants the result, use `spawn`"]
pub struct SpawnFuture<V: Send + 'static, E: Send + 'static = Never> {
    result: ResultRef<V, E>,
}

impl<V: Send, E: Send> SpawnFuture<V, E> {
    /// The pointer, without abandoning.
    fn into_result(self) -> ResultRef<V, E> {
        let this = ManuallyDrop::new(self);
        // SAFETY: the only field, of a value that is not dropped.
        unsafe { ptr::read(&this.result) }
    }
}

impl<V: Send, E: Send> Drop for SpawnFuture<V, E> {
    fn drop(&mut self) {
        // SAFETY: a future that is consumed is not dropped: see `into_result`.
        unsafe { self.result.abandon() };
    }
}

// SAFETY: the second to come to the meeting completes the receiver, as the last thing he does.
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
            met: Handshake::new(),
            _pinned: PhantomPinned,
        }
    }
}

/// What a result is made of.
trait Sent: Send + 'static {}

impl<T: Send + 'static> Sent for T {}

crate::awaitable!([V: Sent, E: Sent] SpawnFuture<V, E>);

/// The operation of [`SpawnFuture`].
///
/// 1. Whoever ends the wait alone writes `outcome`, and then comes to the meeting: the work that delivers, `start` if
///    there is nothing to wait for, or the consumer's own stop request if it could leave.
/// 2. `start` comes there too, when it is done. The second of the two is alone with everything.
/// 3. Before that, all else is used by `start` alone.
pub struct FutureOperation<V: Send + 'static, E: Send + 'static, R> {
    /// Until the start: dropping it abandons the work.
    future: UnsafeCell<Option<SpawnFuture<V, E>>>,
    /// From the start on.
    result: UnsafeCell<Option<ResultRef<V, E>>>,
    receiver: UnsafeCell<Option<R>>,
    outcome: UnsafeCell<Option<Outcome<V, E>>>,
    callback: UnsafeCell<Option<RawCallback<Leave<V, E>>>>,
    met: Handshake,
    _pinned: PhantomPinned,
}

// SAFETY: the rules give each part to one thread at a time, and all of them are `Send`.
unsafe impl<V: Send, E: Send, R: Send> Send for FutureOperation<V, E, R> {}
// SAFETY: as above.
unsafe impl<V: Send, E: Send, R: Send> Sync for FutureOperation<V, E, R> {}

impl<V: Send, E: Send, R: Receiver<V, E>> Operation for FutureOperation<V, E, R> {
    unsafe fn start(self: Pin<&mut Self>) {
        let this = NonNull::from(self.as_ref().get_ref());
        // SAFETY: rule 3: all is ours until the meeting, to which we come last of all. We are pinned, so the work may
        // point to us; the environment of the receiver outlives the callback, which is removed at the meeting.
        unsafe {
            let parts = this.as_ref();
            let (Some(future), Some(receiver)) = ((*parts.future.get()).take(), &*parts.receiver.get_const())
            else {
                return;
            };
            let result = (*parts.result.get()).insert(future.into_result());
            match result.consume(Place { operation: this.cast(), end: Self::end }) {
                Some(outcome) => Self::end(this.cast(), outcome),
                None => {
                    let leave = Leave { result: result.clone(), operation: this.cast(), end: Self::end };
                    let callback = (*parts.callback.get()).insert(RawCallback::new(leave));
                    // If a stop was requested already, it runs the callbacks of the work. A start does not unwind.
                    if let Err(panic) = Panic::catch(|| callback.register(receiver.env().stop())) {
                        result.panicked(panic);
                    }
                }
            }
            Self::meet(this);
        }
    }
}

impl<V: Send, E: Send, R: Receiver<V, E>> FutureOperation<V, E, R> {
    /// # Safety
    /// Rule 1: called once, with a live operation, by who ends the wait.
    unsafe fn end(this: NonNull<()>, outcome: Outcome<V, E>) {
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
            drop((*this.result.get()).take());
            if let (Some(receiver), Some(outcome)) =
                ((*this.receiver.get()).take(), (*this.outcome.get()).take())
            {
                receiver.complete(outcome);
            }
        }
    }
}

/// A stop request of the consumer: it goes on to the work, and the consumer leaves, unless the work delivers.
struct Leave<V: 'static, E: 'static> {
    /// Counted for itself: the work that the request completes may end the consumer, and us with it.
    result: ResultRef<V, E>,
    operation: NonNull<()>,
    end: unsafe fn(NonNull<()>, Outcome<V, E>),
}

// SAFETY: the address is followed only by who has ended the wait.
unsafe impl<V: Send, E: Send> Send for Leave<V, E> {}

impl<V: Send, E: Send> OnStop for Leave<V, E> {
    fn on_stop(self, reason: StopReason) {
        let stopped = self.result.request_stop(reason);
        if self.result.leave() {
            // SAFETY: rule 1 of the operation: the work will not deliver any more.
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
