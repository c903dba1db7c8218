//! A task under a receiver: what `task(future)` creates. The awaiting task adopts it, or a sender completes
//! its receiver.

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
    Adoptable, AdoptedFuture, AdoptedReceiver, OnComplete, Operation, RawCallback, Runnable, post_contained,
};
use convoke_core::{ExecutorRef, Never, Outcome, StopReason};

use crate::registry::{Entry, Found};
use crate::task::{AskStop, Cell, Ending, Inside, Known, ParentLink, TaskHeader, Vacant, no_memory};

/// Makes a future a task of its own, which starts when it is awaited, launched, or passed to `sync_wait`. It
/// is a sender.
///
/// - *Completes with* what the future returns. Stopped, if something in it was stopped and that was not
///   caught; panicked, if it panicked.
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

/// A task that was not started yet: see [`task()`].
#[must_use = "a task does nothing until it is started: by `sync_wait`, `launch` or an `await`"]
pub struct Task<F> {
    future: F,
    name: Option<Arc<str>>,
    location: &'static Location<'static>,
}

impl<F> Task<F> {
    /// Sets the name, for inspection. Without one, the task is known by where it was created.
    pub fn named(mut self, name: impl Into<Arc<str>>) -> Self {
        self.name = Some(name.into());
        self
    }
}

impl<F: Future + Send> Task<F> {
    /// Connects it to a receiver: an operation that runs the task and completes the receiver with its
    /// outcome.
    #[doc(hidden)]
    pub fn connect<R: OnComplete<Outcome<F::Output>>>(self, receiver: R) -> TaskOperation<F, R> {
        TaskOperation {
            task: UnsafeCell::new(Some(self)),
            receiver: UnsafeCell::new(Some(receiver)),
            link: UnsafeCell::new(None),
            callback: UnsafeCell::new(None),
            _pinned: PhantomPinned,
        }
    }
}

// SAFETY: `RootEnding::deliver` completes the receiver. By then the future is gone, all operations have
// completed, the callback is removed, and nothing is queued.
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

/// The operation of a [`Task`]. Its fields belong to `start` until the task is given to its executor, then to
/// the task.
pub struct TaskOperation<F, R> {
    /// Set until it is started.
    task: UnsafeCell<Option<Task<F>>>,
    /// Set until it is completed.
    receiver: UnsafeCell<Option<R>>,
    /// Set by `start`.
    link: UnsafeCell<Option<ParentLink>>,
    callback: UnsafeCell<Option<RawCallback<AskStop>>>,
    _pinned: PhantomPinned,
}

// SAFETY: the task and the receiver are `Send`, and each field belongs to one thread at a time, as said at
// the type.
unsafe impl<F: Send, R: Send> Send for TaskOperation<F, R> {}

impl<F: Future + Send, R: OnComplete<Outcome<F::Output>>> Operation for TaskOperation<F, R> {
    unsafe fn start(self: Pin<&mut Self>) {
        // SAFETY: the operation is not moved out of the pin. `start` is called once, and every field belongs
        // to it until the task is dispatched. What it puts there stays until the task has delivered, and so
        // until it has left.
        unsafe {
            let this = NonNull::from(self.get_unchecked_mut());
            let (link, callback) = (this.as_ref().link.get(), this.as_ref().callback.get());
            let Some(Task { future, name, location }) = (*this.as_ref().task.get()).take() else { return };
            let Some(receiver) = &*this.as_ref().receiver.get_const() else { return };
            let env = NonNull::from(receiver.env());
            let stop = env.as_ref().stop();
            let link = (*link).insert(ParentLink::new(
                env,
                ParentLink::home_of(env.as_ref()),
                stop.deadline(),
                Inside::current(),
                reason,
            ));
            let link = NonNull::from(link);
            let Some(vacant) = Vacant::allocate(link.as_ref(), location) else {
                drop(future);
                return complete(this, Outcome::Panicked(no_memory::<F>(location)));
            };
            let ending = RootEnding { operation: this, name, entry: Entry::new() };
            let task = vacant.fill(future, ending, link.as_ref(), false);
            RootEnding::<F, R>::at(task).entry.link(task.cast(), RootEnding::<F, R>::look);
            (*callback).insert(RawCallback::new(AskStop(task))).register(stop);
            // Another thread may run the task to its end, and complete the receiver, while `dispatch` is
            // still executing.
            let executor = NonNull::from(env.as_ref().executor());
            if let Some(runnable) = ExecutorRef::dispatch_cloned(executor, Runnable::new(task.cast()))
                && let Some(too_deep) = runnable.run_on_top()
            {
                // The task has not run, so the environment is still there.
                post_contained(executor.as_ref().clone(), too_deep);
            }
        }
    }
}

/// Returns why the task was asked to stop.
///
/// # Safety
/// The parent link is alive.
unsafe fn reason(link: NonNull<ParentLink>) -> Option<StopReason> {
    // SAFETY: the parent link is alive: the caller's promise.
    unsafe { link.as_ref() }.env().stop().reason()
}

/// Completes the receiver. The operation may be gone afterwards.
///
/// # Safety
/// The operation is alive, its receiver was not completed, and no other thread uses it.
unsafe fn complete<F: Future, R: OnComplete<Outcome<F::Output>>>(
    operation: NonNull<TaskOperation<F, R>>,
    outcome: Outcome<F::Output>,
) {
    // SAFETY: the operation is alive and the caller's alone: its promise.
    if let Some(receiver) = unsafe { (*operation.as_ref().receiver.get()).take() } {
        receiver.complete(outcome);
    }
}

/// The ending that completes the receiver.
struct RootEnding<F, R> {
    operation: NonNull<TaskOperation<F, R>>,
    name: Option<Arc<str>>,
    /// Linked into the registry until the task has left.
    entry: Entry,
}

impl<F: Future + Send, R: OnComplete<Outcome<F::Output>>> RootEnding<F, R> {
    /// Returns the ending of a task.
    ///
    /// # Safety
    /// The task has this ending, and is alive for `'a`.
    unsafe fn at<'a>(task: NonNull<TaskHeader>) -> &'a Self {
        // SAFETY: the task is alive, and its ending does not change.
        unsafe { Cell::<F, Self>::ending_at(task).as_ref() }
    }

    /// Adds the task to `found`.
    ///
    /// # Safety
    /// The task has this ending, and has not left.
    unsafe fn look(task: NonNull<()>, found: &mut Found) {
        let task = task.cast::<TaskHeader>();
        // SAFETY: the task has not left: the caller's promise. The parent link was set before the task was
        // created, and stays until it has left.
        unsafe {
            let ending = Self::at(task);
            let above = (*ending.operation.as_ref().link.get_const()).as_ref().and_then(|link| link.parent);
            found.task(task.as_ref(), above);
            if let Some(name) = &ending.name {
                found.name(task, name);
            }
        }
    }
}

// SAFETY: nothing here frees the task.
unsafe impl<F: Future + Send, R: OnComplete<Outcome<F::Output>>> Ending<F::Output> for RootEnding<F, R> {
    unsafe fn ended(&self, _: NonNull<TaskHeader>, _: NonNull<Outcome<F::Output>>) {
        // SAFETY: the operation is alive until its receiver is completed. The callback belongs to the task:
        // `start` registered it before the task could run.
        if let Some(callback) = unsafe { &*self.operation.as_ref().callback.get_const() } {
            // SAFETY: it was registered by `start`, and is removed once.
            unsafe { callback.remove() };
        }
    }

    unsafe fn deliver(&self, _: NonNull<TaskHeader>, slot: NonNull<Outcome<F::Output>>) -> Known {
        // SAFETY: the operation is alive until its receiver is completed, here. Rule 3 of the registry: no
        // lock is held. The outcome is in the slot, and is taken once.
        unsafe {
            self.entry.unlink();
            complete(self.operation, slot.read());
        }
        // The only other reference to the task is in the stop callback, which `ended` has removed, and waited
        // for.
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
