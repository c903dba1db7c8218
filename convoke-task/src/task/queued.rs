//! The runnable of a task: the right to post it, or to run it.

#![allow(unsafe_code)]

use core::ptr::NonNull;

use convoke_core::raw::Runnable;
use convoke_core::{Env, ExecutorRef};

use super::header::{NotLeft, TaskHeader};
use super::parent_link::ParentLink;

/// A task that is queued, held by the one that its state has told to create the runnable. The rules:
///
/// 1. There is one at most for a task: `QUEUED` is set for it, and cleared by the thread that enters the
///    task.
/// 2. While it exists the task does not run and has not left: its environment and its parent link stay.
#[must_use = "a task that is queued has to be posted or run"]
pub(super) struct Queued(NonNull<TaskHeader>);

impl Queued {
    /// Creates it.
    ///
    /// # Safety
    /// Rule 1: a transition of the state has just told the caller to create the runnable.
    #[inline]
    pub(super) unsafe fn new(task: NonNull<TaskHeader>) -> Self {
        Self(task)
    }

    /// Returns the address of the task.
    #[inline]
    pub(super) fn task(&self) -> NonNull<TaskHeader> {
        self.0
    }

    /// Returns the environment that the task runs in.
    #[inline]
    pub(super) fn env(&self) -> &Env {
        // SAFETY: our rule 2 is what rules 2 and 3 of the header ask for: the task has not left, and no thread
        // is inside.
        unsafe { NotLeft::new(self.0.as_ref()).env() }
    }

    /// Creates the runnable.
    #[inline]
    pub(super) fn into_runnable(self) -> Runnable {
        // SAFETY: rule 1: there is no other one. The task does not move, and is alive until it is run: rule 2.
        unsafe { Runnable::new(self.0.cast()) }
    }

    /// Posts the task to its executor. A panic of the executor ends here: see [`ExecutorRef::post_cloned`].
    // Not inlined: most wakes find the task queued or running, and need none of this.
    #[inline(never)]
    pub(super) fn post(self) {
        let executor = NonNull::from(self.env().executor());
        self.post_to(executor);
    }

    /// Posts a task that has not run yet, and so has not moved: its executor is that of its parent link.
    ///
    /// # Safety
    /// `link` is the parent link of the task.
    #[inline]
    pub(super) unsafe fn post_first(self, link: NonNull<ParentLink>) {
        // SAFETY: rule 2: the parent link stays while `self` exists, and is not read after that.
        let executor = NonNull::from(unsafe { link.as_ref() }.env().executor());
        self.post_to(executor);
    }

    /// Posts the task to this executor, which is its own.
    ///
    /// As soon as another thread can see the runnable, the task may run to its end there and free its
    /// environment, the executor's handle included. So the runnable goes straight into the queue of the loop
    /// that this thread runs, or through a clone of the handle.
    #[inline]
    fn post_to(self, executor: NonNull<ExecutorRef>) {
        let task = self.0;
        let mut runnable = self.into_runnable();
        // SAFETY: rule 2: the environment, and the executor in it, stay while this thread has the runnable. If
        // that goes into the queue of this thread's loop, then until this thread runs it.
        unsafe {
            if executor.as_ref().queues_locally() {
                match task.as_ref().queue_locally(runnable) {
                    Ok(()) => return,
                    Err(back) => runnable = back,
                }
            }
            ExecutorRef::post_cloned(executor, runnable);
        }
    }
}
