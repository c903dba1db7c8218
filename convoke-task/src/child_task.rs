//! A task under a receiver: what `task(future)` makes. The awaiting task adopts it, or a sender completes its receiver.

#![allow(unsafe_code)]

use core::fmt;
use core::future::{Future, IntoFuture};
use core::marker::PhantomPinned;
use core::panic::Location;
use core::pin::Pin;
use core::ptr::NonNull;
use std::sync::Arc;

use convoke_core::raw::sync::UnsafeCell;
use convoke_core::raw::{
    Adoptable, AdoptedFuture, AdoptedReceiver, OnComplete, Operation, RawCallback, Runnable,
};
use convoke_core::{ExecutorRef, Never, Outcome, StopReason};

use crate::registry::{Entry, Found};
use crate::task::{AskStop, Cell, Ending, Inside, Known, ParentLink, TaskHeader, Vacant, no_memory};

/// Makes a sender of a future: `sync_wait` starts it, `launch` does, or another task that awaits it.
///
/// - *Completes with* what the future returns. Stopped, if something in it was stopped and nobody caught that; panicked,
///   if it panicked.
/// - *If dropped* before it was started, the future is dropped unpolled.
/// - *Runs on* the executor of the environment it is started in, and resumes there after every `await`.
///
/// ```
/// use convoke::prelude::*;
/// use convoke::sender::prelude::*;
///
/// async fn double(n: u32) -> u32 {
///     just(n).then(|n| 2 * n).await
/// }
///
/// assert_eq!(block_on(async { double(20).await + 2 }), Outcome::Value(42));
/// ```
#[track_caller]
pub fn task<F: Future + Send>(future: F) -> Task<F> {
    Task { future, name: None, location: Location::caller() }
}

/// See [`task()`].
#[must_use = "a task does nothing until it is started: by `sync_wait`, `launch` or an `await`"]
pub struct Task<F> {
    future: F,
    name: Option<Arc<str>>,
    location: &'static Location<'static>,
}

impl<F> Task<F> {
    /// Gives it a name, for people who look. Without one it is known by where it was made.
    pub fn named(mut self, name: impl Into<Arc<str>>) -> Self {
        self.name = Some(name.into());
        self
    }
}

impl<F: Future + Send> Task<F> {
    /// Connects it to a receiver: an operation that runs the task and completes the receiver with its outcome.
    #[doc(hidden)]
    pub fn connect<R: OnComplete<Outcome<F::Output>>>(self, receiver: R) -> TaskOperation<F, R> {
        TaskOperation {
            task: UnsafeCell::new(Some(self)),
            receiver: UnsafeCell::new(Some(receiver)),
            place: UnsafeCell::new(None),
            callback: UnsafeCell::new(None),
            _pinned: PhantomPinned,
        }
    }
}

// SAFETY: the receiver is completed by `RootEnding::deliver`: the future is gone, all that was awaited in it has completed, the
// callback is removed, and nothing is queued.
unsafe impl<F: Future<Output: Send> + Send> Adoptable for Task<F> {
    type Value = F::Output;
    type Error = Never;
    type Operation = TaskOperation<F, AdoptedReceiver<F::Output, Never>>;
    const NAME: &'static str = "a task";

    fn connect(self, receiver: AdoptedReceiver<F::Output, Never>) -> Self::Operation {
        Task::connect(self, receiver)
    }
}

impl<F: Future<Output: Send> + Send + 'static> IntoFuture for Task<F> {
    type Output = F::Output;
    type IntoFuture = AdoptedFuture<Self>;

    #[inline]
    #[track_caller]
    fn into_future(self) -> AdoptedFuture<Self> {
        AdoptedFuture::new(self)
    }
}

/// The operation of a [`Task`]. Its fields belong to `start` until the task is given to its executor, then to the task.
pub struct TaskOperation<F, R> {
    /// Until it is started.
    task: UnsafeCell<Option<Task<F>>>,
    /// Until it is completed.
    receiver: UnsafeCell<Option<R>>,
    /// From the start on.
    place: UnsafeCell<Option<ParentLink>>,
    callback: UnsafeCell<Option<RawCallback<AskStop>>>,
    _pinned: PhantomPinned,
}

// SAFETY: the task and the receiver are `Send`, and the rest is used as is said above.
unsafe impl<F: Send, R: Send> Send for TaskOperation<F, R> {}

impl<F: Future + Send, R: OnComplete<Outcome<F::Output>>> Operation for TaskOperation<F, R> {
    unsafe fn start(self: Pin<&mut Self>) {
        // SAFETY: the operation is not moved. We are started once, and nobody else is here before the task is given away;
        // what is put into the fields stays there until the task has delivered, and so outlives its stay.
        unsafe {
            let this = NonNull::from(self.get_unchecked_mut());
            let (place, callback) = (this.as_ref().place.get(), this.as_ref().callback.get());
            let Some(Task { future, name, location }) = (*this.as_ref().task.get()).take() else { return };
            let Some(receiver) = &*this.as_ref().receiver.get_const() else { return };
            let env = NonNull::from(receiver.env());
            let stop = env.as_ref().stop();
            let place = (*place).insert(ParentLink::new(
                env,
                ParentLink::home_of(env.as_ref()),
                stop.deadline(),
                Inside::current(),
                reason,
            ));
            let place = NonNull::from(place);
            let Some(vacant) = Vacant::allocate(place.as_ref(), location) else {
                drop(future);
                return complete(this, Outcome::Panicked(no_memory::<F>(location)));
            };
            let ending = RootEnding { operation: this, name, entry: Entry::new() };
            let task = vacant.fill(future, ending, place.as_ref(), false);
            RootEnding::<F, R>::at(task).entry.link(task.cast(), RootEnding::<F, R>::look);
            (*callback).insert(RawCallback::new(AskStop(task))).register(stop);
            // Another thread may run the task to its end, and complete the receiver, while `dispatch` is still executing.
            let executor = NonNull::from(env.as_ref().executor());
            if let Some(runnable) = ExecutorRef::dispatch_cloned(executor, Runnable::new(task.cast())) {
                runnable.run();
            }
        }
    }
}

/// Why the task was asked to stop.
///
/// # Safety
/// There are tasks in this place.
unsafe fn reason(place: NonNull<ParentLink>) -> Option<StopReason> {
    // SAFETY: the caller's.
    unsafe { place.as_ref() }.env().stop().reason()
}

/// Completes the receiver. The operation may be gone then.
///
/// # Safety
/// The operation is there, its receiver was not completed, and nobody else uses it.
unsafe fn complete<F: Future, R: OnComplete<Outcome<F::Output>>>(
    operation: NonNull<TaskOperation<F, R>>,
    outcome: Outcome<F::Output>,
) {
    // SAFETY: the caller's.
    if let Some(receiver) = unsafe { (*operation.as_ref().receiver.get()).take() } {
        receiver.complete(outcome);
    }
}

/// The outcome goes to the receiver.
struct RootEnding<F, R> {
    operation: NonNull<TaskOperation<F, R>>,
    name: Option<Arc<str>>,
    /// Linked until the task has left.
    entry: Entry,
}

impl<F: Future + Send, R: OnComplete<Outcome<F::Output>>> RootEnding<F, R> {
    /// # Safety
    /// The task is one with this ending, and there.
    unsafe fn at<'a>(task: NonNull<TaskHeader>) -> &'a Self {
        // SAFETY: the caller's; the ending is not changed.
        unsafe { Cell::<F, Self>::ending_at(task).as_ref() }
    }

    /// Tells of the task.
    ///
    /// # Safety
    /// The task is one with this ending, and has not left.
    unsafe fn look(task: NonNull<()>, found: &mut Found) {
        let task = task.cast::<TaskHeader>();
        // SAFETY: the caller's; the place was put there before the task was made, and stays until it has left.
        unsafe {
            let ending = Self::at(task);
            let above =
                (*ending.operation.as_ref().place.get_const()).as_ref().and_then(|place| place.parent);
            found.task(task.as_ref(), above);
            if let Some(name) = &ending.name {
                found.name(task, name);
            }
        }
    }
}

// SAFETY: the task is not freed by what is done here.
unsafe impl<F: Future + Send, R: OnComplete<Outcome<F::Output>>> Ending<F::Output> for RootEnding<F, R> {
    unsafe fn ended(&self, _: NonNull<TaskHeader>, _: NonNull<Outcome<F::Output>>) {
        // SAFETY: the operation is there until its receiver was completed. The callback is the task's to remove, since `start`
        // has registered it before the task could run.
        if let Some(callback) = unsafe { &*self.operation.as_ref().callback.get_const() } {
            // SAFETY: as above.
            unsafe { callback.remove() };
        }
    }

    unsafe fn deliver(&self, _: NonNull<TaskHeader>, room: NonNull<Outcome<F::Output>>) -> Known {
        // SAFETY: the operation is there; the task has left, and nobody looks at it when it is freed. The outcome is there, and
        // taken once.
        unsafe {
            self.entry.unlink();
            complete(self.operation, room.read());
        }
        // The one who asks it to stop is removed in `ended`, and waited for.
        Known::ToTheParent
    }
}

impl<F> fmt::Debug for Task<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Task")
            .field("name", &self.name)
            .field("made at", &self.location)
            .finish_non_exhaustive()
    }
}

impl<F, R> fmt::Debug for TaskOperation<F, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TaskOperation").finish_non_exhaustive()
    }
}
