//! Waking a task at home by the waker that somebody keeps: without a call, a reference, or any code of the program's. For drivers,
//! whose thread mostly is the home of those who wait.

#![allow(unsafe_code)]

use core::ptr::{self, NonNull};
use core::task::Waker;

use convoke_core::raw::Runnable;

use super::header::TaskHeader;
use super::state::{Access, Wake};
use convoke_exec::raw::Runner;

/// Wakes a task that lives in the loop which this thread runs. False if the waker is of anything else: then nothing was done, and it
/// is to be woken as wakers are.
///
/// The task is put into the queue of the loop, and nothing else happens; so this may be called with a lock held.
#[inline]
pub fn wake_locally(waker: &Waker) -> bool {
    let Some(task) = task_of(waker) else { return false };
    // SAFETY: the waker is a reference to its task.
    let this = unsafe { task.as_ref() };
    Runner::current(|runner, home| {
        // SAFETY: rule 3: the task lives here and has not ended, so it cannot leave while this thread is in here; nor has it moved.
        if !this.lives_in(home) || this.state.is_done() || !unsafe { this.env() }.executor().queues_at_home()
        {
            return false;
        }
        if this.state.wake(Access::Local) == Wake::Post {
            // SAFETY: the state has said that the runnable is ours to make.
            runner.push(unsafe { Runnable::new(task.cast()) });
        }
        true
    })
    .unwrap_or(false)
}

impl TaskHeader {
    /// Puts the runnable of this task into the queue of the loop that this thread runs, if the task lives there. Hands it back
    /// otherwise.
    #[inline]
    pub(super) fn queue_at_home(&self, runnable: Runnable) -> Result<(), Runnable> {
        let mut runnable = Some(runnable);
        Runner::current(|runner, home| {
            if self.lives_in(home)
                && let Some(runnable) = runnable.take()
            {
                runner.push(runnable);
            }
        });
        runnable.map_or(Ok(()), Err)
    }
}

/// The task that a waker is of, if it is one of ours.
#[inline]
fn task_of(waker: &Waker) -> Option<NonNull<TaskHeader>> {
    // SAFETY: it is asked for its functions, and for nothing else.
    let ours = unsafe { TaskHeader::borrowed_waker(NonNull::dangling()) };
    // SAFETY: a waker of ours has the address of its task.
    ptr::eq(waker.vtable(), ours.vtable())
        .then(|| unsafe { NonNull::new_unchecked(waker.data().cast_mut().cast()) })
}
