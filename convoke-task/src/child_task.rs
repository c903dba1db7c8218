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
    Adoptable, AdoptedFuture, AdoptedReceiver, OnComplete, Operation, OutOfLine, Runnable, WorkRef,
};
use convoke_core::{ExecutorRef, Never, Outcome};

use crate::solo_parent::SoloParent;
use crate::task::{After, Ending, Inside, Leaving, Left, OutcomeSlot, ParentLink, Spawnable, no_memory};

/// Makes a future a task of its own, which starts when it is awaited, launched, or passed to `sync_wait`. It
/// is a sender.
///
/// Use this if a future is to have a name, a place in the tree or a budget of its own, or becomes a sender. Use
/// a [`scope`](crate::scope()) to start it beside others.
///
/// - *Completes with* what the future returns. Stopped, if something in it was stopped and that was not
///   caught; panicked, if it panicked.
/// - *If dropped* before it was started, the future is dropped unpolled.
/// - *Runs on* the executor of the environment it is started in, and resumes there after every `await`.
///
/// ```
/// use convoke::prelude::*;
/// use convoke::task::task;
///
/// async fn double(n: u32) -> u32 {
///     checkpoint().await;
///     2 * n
/// }
///
/// let outcome = block_on(async { task(double(20)).named("double").await + 2 });
/// assert_eq!(outcome, Outcome::Value(42));
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
            parent: UnsafeCell::new(None),
            _pinned: PhantomPinned,
        }
    }
}

// SAFETY: `Complete::tell` completes the receiver. By then the future is gone, all operations have
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

/// The operation of a [`Task`]. The rules:
///
/// 1. Its fields belong to `start` until the task is given to its executor, then to the task.
/// 2. It is alive, and does not move, until its receiver is completed: the contract of [`Operation`]. The task
///    completes it when it has left.
pub struct TaskOperation<F, R> {
    /// Set until it is started.
    task: UnsafeCell<Option<Task<F>>>,
    /// Set until the task leaves.
    receiver: UnsafeCell<Option<R>>,
    /// Set by `start`.
    parent: UnsafeCell<Option<OutOfLine<SoloParent>>>,
    _pinned: PhantomPinned,
}

// SAFETY: the task and the receiver are `Send`, and each field belongs to one thread at a time: rule 1.
unsafe impl<F: Send, R: Send> Send for TaskOperation<F, R> {}

impl<F: Future + Send, R: OnComplete<Outcome<F::Output>>> Operation for TaskOperation<F, R> {
    unsafe fn start(self: Pin<&mut Self>) {
        // SAFETY: the operation is not moved out of the pin. Rule 1: every field belongs to `start`, which is
        // called once, until the task is dispatched. Rule 2: what it puts there stays until the task has left,
        // as the rules of `SoloParent` and `ParentLink::borrowing` require; so does what the future borrows.
        unsafe {
            let this = NonNull::from(self.get_unchecked_mut());
            let parts = this.as_ref();
            let Some(Task { future, name, location }) = (*parts.task.get()).take() else { return };
            let Some(receiver) = &*parts.receiver.get_const() else { return };
            let env = NonNull::from(receiver.env());
            let link = ParentLink::borrowing(env, Inside::current());
            let parent = &*(*parts.parent.get()).insert(OutOfLine::new(SoloParent::new(link, name)));
            let to_receiver = || ToReceiver(WorkRef::new(this));
            match parent.create(Spawnable::borrowing(future), to_receiver(), location) {
                Ok(task) => {
                    // Another thread may run the task to its end, and complete the receiver, while `post` or
                    // `dispatch` is still executing. The environment is not used after either: an executor
                    // may hand back other work than it was given.
                    let executor = NonNull::from(env.as_ref().executor());
                    if Runnable::are_too_deep() {
                        ExecutorRef::post_cloned(executor, task.into_runnable());
                    } else if let Some(runnable) =
                        ExecutorRef::dispatch_cloned(executor, task.into_runnable())
                    {
                        runnable.run_on_top();
                    }
                }
                Err(future) => {
                    drop(future);
                    to_receiver().complete(Outcome::Panicked(no_memory::<F>(location))).tell();
                }
            }
        }
    }
}

/// The ending that completes the receiver. Rule 2: the operation is alive until that is completed, and it is taken last.
struct ToReceiver<F, R>(WorkRef<TaskOperation<F, R>>);

impl<F: Future, R: OnComplete<Outcome<F::Output>>> ToReceiver<F, R> {
    /// Takes the receiver, to complete it with this outcome.
    fn complete(&self, outcome: Outcome<F::Output>) -> Complete<R, F::Output> {
        // SAFETY: rule 1: the task has ended, or was not created: this thread has the operation to itself.
        Complete(unsafe { (*self.0.receiver.get()).take() }, outcome)
    }
}

/// The completion of a receiver. The operation may be gone afterwards.
struct Complete<R, T>(Option<R>, Outcome<T>);

impl<T, R: OnComplete<Outcome<T>>> After for Complete<R, T> {
    fn tell(self) {
        if let Some(receiver) = self.0 {
            receiver.complete(self.1);
        }
    }
}

// SAFETY: contract 1: `own_link` is the provided one, which returns none. Contract 2: `ASKED_FOR` is false, as provided.
unsafe impl<F: Future + Send, R: OnComplete<Outcome<F::Output>>> Ending<F::Output> for ToReceiver<F, R> {
    type After = Complete<R, F::Output>;

    fn name(&self) -> Option<Arc<str>> {
        // SAFETY: rule 1: the task was not posted yet, and this is called by the thread that starts it.
        let parent = unsafe { &*self.0.parent.get_const() };
        parent.as_ref().and_then(|parent| parent.name().cloned())
    }

    fn ended(&self, _: &Inside, _: &mut Outcome<F::Output>) {
        // SAFETY: rule 1: the fields belong to the task, which calls this once, from inside: rule 3 of
        // `SoloParent`.
        unsafe {
            if let Some(parent) = &*self.0.parent.get_const() {
                parent.ended();
            }
        }
    }

    fn deliver(
        &self,
        task: Leaving<'_>,
        outcome: OutcomeSlot<'_, F::Output>,
    ) -> (Left, Complete<R, F::Output>) {
        (task.leave_no_list(), self.complete(outcome.take()))
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
