//! A task in a changed environment: what `run_on` and `env::with` await.

#![allow(unsafe_code)]

use core::fmt;
use core::future::Future;
use core::marker::PhantomPinned;
use core::pin::Pin;
use core::ptr::NonNull;

use convoke_core::env::Changes;
use convoke_core::raw::sync::UnsafeCell;
use convoke_core::raw::{Adoptable, AdoptedReceiver, OnComplete, Operation, ScopedEnv, Slot};
use convoke_core::{Env, Never, Outcome};

use crate::child_task::{Task, TaskOperation};

/// A task, and the changes to the environment that it is awaited in.
#[derive(Debug)]
pub struct ChildInEnv<F> {
    task: Task<F>,
    changes: Changes,
}

impl<F> ChildInEnv<F> {
    pub(crate) fn new(task: Task<F>, changes: Changes) -> Self {
        Self { task, changes }
    }
}

// SAFETY: `ChildReceiver` is the only one that completes the receiver above. A task completes its receiver once, and
// `ChildReceiver::complete` has cleared the slot, and with it the task, before it does so.
unsafe impl<F: Future<Output: Send> + Send> Adoptable for ChildInEnv<F> {
    type Value = F::Output;
    type Error = Never;
    type Operation = ChildOperation<F>;
    const NAME: &'static str = "a task in a changed environment";

    fn connect(self, receiver: AdoptedReceiver<F::Output, Never>) -> ChildOperation<F> {
        ChildOperation {
            child: UnsafeCell::new(Some(self)),
            receiver: UnsafeCell::new(Some(receiver)),
            env: UnsafeCell::new(None),
            task: Slot::new(),
            _pinned: PhantomPinned,
        }
    }
}

/// The operation of a [`ChildInEnv`]. The rules of who may touch which field:
/// 1. Every field belongs to `start` until it starts the task, its last step.
/// 2. Then every field belongs to the task's receiver. Until it completes it only reads `env`.
/// 3. The operation stays where it is, and alive, until the receiver above is completed, the last step of the
///    task's receiver.
pub struct ChildOperation<F: Future + Send> {
    child: UnsafeCell<Option<ChildInEnv<F>>>,
    receiver: UnsafeCell<Option<AdoptedReceiver<F::Output, Never>>>,
    env: UnsafeCell<Option<ScopedEnv>>,
    task: Slot<TaskOperation<F, ChildReceiver<F>>>,
    _pinned: PhantomPinned,
}

// SAFETY: rules 1 and 2 give each field to one thread at a time, and all of them are `Send`.
unsafe impl<F: Future<Output: Send> + Send> Send for ChildOperation<F> {}

impl<F: Future<Output: Send> + Send> Operation for ChildOperation<F> {
    unsafe fn start(self: Pin<&mut Self>) {
        // SAFETY: the operation is not moved out of the pin. Rule 1: the task is started in the last line. The receiver's environment outlives the scoped one, which is dropped before
        // the receiver is completed.
        unsafe {
            let this = NonNull::from(self.get_unchecked_mut());
            let parts = this.as_ref();
            let Some(ChildInEnv { task, changes }) = (*parts.child.get()).take() else { return };
            let Some(receiver) = &*parts.receiver.get_const() else { return };
            *parts.env.get() = Some(ScopedEnv::new(receiver.env(), changes));
            Slot::run(NonNull::from(&parts.task), || task.connect(ChildReceiver(this)));
        }
    }
}

/// The receiver of the task, which passes the outcome on.
struct ChildReceiver<F: Future + Send>(NonNull<ChildOperation<F>>);

// SAFETY: rule 2 gives the fields to whichever thread completes it, all of them are `Send`, and rule 3 keeps the
// operation alive until then.
unsafe impl<F: Future<Output: Send> + Send> Send for ChildReceiver<F> {}

impl<F: Future<Output: Send> + Send> OnComplete<Outcome<F::Output>> for ChildReceiver<F> {
    fn complete(self, outcome: Outcome<F::Output>) {
        // SAFETY: rule 2: the task calls this once, when it has completed, so every field belongs to this
        // receiver. Rule 3: the completion, which may destroy the operation, is the last step.
        unsafe {
            let parts = self.0.as_ref();
            let outcome = parts.task.clear_after(outcome);
            // A value of the environment may panic when it is dropped.
            let outcome = outcome.after_drop_of((*parts.env.get()).take());
            if let Some(receiver) = (*parts.receiver.get()).take() {
                receiver.complete(outcome);
            }
        }
    }

    fn env(&self) -> &Env {
        // SAFETY: rule 2: `start` has set the environment before it started the task, and only `complete`, which
        // uses this receiver up, takes it.
        unsafe { (*self.0.as_ref().env.get_const()).as_ref().expect("made by `start`") }
    }
}

impl<F: Future + Send> fmt::Debug for ChildOperation<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ChildOperation").finish_non_exhaustive()
    }
}
