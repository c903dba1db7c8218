//! The runnable of a task: the right to post it, or to run it.

#![allow(unsafe_code)]

use core::ptr::NonNull;

use convoke_core::raw::{OwnerId, Runnable, watching};
use convoke_core::{Env, ExecutorRef};
use convoke_exec::raw::Runner;

use super::header::{NotLeft, TaskHeader};

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

    /// Returns true if the executor of the task puts it into the queue of the run loop with this owner thread, or with
    /// `NOBODY`.
    #[inline]
    pub(super) fn queues_in(&self, owner: OwnerId) -> bool {
        // SAFETY: rule 2: the task has not left. The caller of `new` was told to create the runnable, so that
        // rule 2 of the header gives it the fields that are read here.
        let header = unsafe { self.0.as_ref() };
        header.queues_here() && header.is_owned_by(owner)
    }

    /// Posts the task to its executor. A panic of the executor ends here: see [`ExecutorRef::post_cloned`].
    ///
    /// As soon as another thread can see the runnable, the task may run to its end there and free its
    /// environment, the executor's handle included. So the runnable goes straight into the queue of the loop
    /// that this thread runs, or through a clone of the handle.
    #[inline]
    pub(super) fn post(self) {
        if let Err(queued) = self.queue_locally() {
            queued.post_through_clone();
        }
    }

    /// Runs the task on this thread, inside the poll that this is called from, if the run loop of this thread would
    /// run it next. Posts it otherwise.
    #[inline]
    pub(super) fn run_or_post(self) {
        if Runner::current(|runner| self.queues_in(runner.owner())).unwrap_or(false) {
            let _set_aside = watching::set_aside();
            self.into_runnable().run();
        } else {
            self.post_through_clone();
        }
    }

    /// Posts the task as [`post`](Queued::post) does: for callers that seldom have to.
    #[inline(never)]
    pub(super) fn post_out_of_line(self) {
        self.post();
    }

    #[inline(never)]
    fn post_through_clone(self) {
        let executor = NonNull::from(self.env().executor());
        // SAFETY: rule 2: the environment, and the executor in it, stay while this thread has the runnable.
        unsafe { ExecutorRef::post_cloned(executor, self.into_runnable()) };
    }
}
