//! Waking a task on its owner thread through a stored waker: without an indirect call, a reference count, or
//! any code of the program. For drivers, whose thread mostly is the owner thread of the tasks that wait.

#![allow(unsafe_code)]

use core::mem::ManuallyDrop;
use core::ptr;
use core::task::Waker;

use super::queued::Queued;
use super::reference::TaskRef;
use super::state::{Access, Wake};
use super::waker::{WAKER, reference};
use convoke_exec::raw::Runner;

/// Wakes a task whose owner thread is this one, by its waker. Returns false, and does nothing, if the waker
/// is any other: then call `wake_by_ref`.
///
/// The task is put into the queue of the run loop, and nothing else happens. So this may be called with a
/// lock held.
#[inline]
pub fn wake_locally(waker: &Waker) -> bool {
    let Some(task) = task_of(waker) else { return false };
    let (task, this) = (task.alive().address(), task.alive().header());
    Runner::current(|runner| {
        let owner = runner.owner();
        if !this.is_owned_by(owner) || this.state.is_done() {
            return false;
        }
        // Rule 2 of the header: this is the owner thread of a task that has not ended, so the task can neither
        // leave nor move while this thread is in here.
        if !this.queues_here() {
            return false;
        }
        if this.state.wake(Access::Local) == Wake::Post {
            // SAFETY: rule 1 of `Queued`: `Wake::Post` makes the caller the holder of the runnable.
            runner.push(unsafe { Queued::new(task) }.into_runnable());
        }
        true
    })
    .unwrap_or(false)
}

impl Queued {
    /// Puts the task into the queue of the run loop that this thread runs, if that is the queue of its
    /// executor. Hands it back otherwise.
    #[inline]
    pub(super) fn queue_locally(self) -> Result<(), Self> {
        let mut queued = Some(self);
        Runner::current(|runner| {
            if queued.as_ref().is_some_and(|queued| queued.queues_in(runner.owner()))
                && let Some(queued) = queued.take()
            {
                runner.push(queued.into_runnable());
            }
        });
        queued.map_or(Ok(()), Err)
    }
}

/// Returns the task of a waker, if it is the waker of a task.
#[inline]
fn task_of(waker: &Waker) -> Option<ManuallyDrop<TaskRef>> {
    // SAFETY: a waker with this vtable is that of a task, and is borrowed by the caller, which does not drop the
    // result.
    ptr::eq(waker.vtable(), &WAKER).then(|| unsafe { reference(waker.data()) })
}
