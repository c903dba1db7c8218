//! Remote wakes: how a thread that is not the owner thread of a task wakes it, asks it to stop, or hands back
//! its runnable.

#![allow(unsafe_code)]

use core::ptr::NonNull;

use convoke_core::raw::{RemoteWake, Runnable, post_contained};
use convoke_core::{Executor, Panic};

use super::header::{Stage, TaskHeader};
use super::parent_link::ParentLink;
use super::reference::Alive;

impl TaskHeader {
    /// Sends the remote wake to the task's owner thread.
    ///
    /// # Safety
    /// The state has told the caller to send the remote wake.
    #[cold]
    pub(super) unsafe fn send_remote_wake(task: NonNull<Self>) {
        // SAFETY: rule 3 of the header: the task waits for the remote wake, so it has not left.
        unsafe { Self::send_remote_wake_via(task, NonNull::from(task.as_ref().parent_link())) };
    }

    /// Sends the remote wake to the owner thread of tasks that are spawned under this parent link.
    ///
    /// Aborts the process if the executor, which may be the program's own, panics in `clone` or
    /// `owner_thread`, or names another owner thread than when the link was made: the task waits for the
    /// remote wake, and no other thread may touch it.
    ///
    /// # Safety
    /// The state has told the caller to send the remote wake, and `link` is, or was, the task's parent link.
    pub(super) unsafe fn send_remote_wake_via(task: NonNull<Self>, link: NonNull<ParentLink>) {
        // SAFETY: the task waits for the remote wake, so its parent link is alive until that is received.
        // From then on this thread uses only its own clone of the executor, which keeps the owner thread
        // alive.
        unsafe {
            let link = link.as_ref();
            let Ok(executor) = Panic::catch(|| link.env().executor().clone()) else { unreachable_owner() };
            let Ok(Some(owner)) = Panic::catch(|| executor.owner_thread()) else { unreachable_owner() };
            if owner.id() != link.home() {
                unreachable_owner();
            }
            let wake = RemoteWake::new(task.cast(), Self::receive);
            if let Some(runnable) = owner.send(wake) {
                post_contained(executor, runnable);
            }
        }
    }

    /// Receives the remote wake.
    ///
    /// # Safety
    /// Called once for a remote wake, on the owner thread.
    unsafe fn receive(task: NonNull<()>) {
        let task = task.cast::<Self>();
        // SAFETY: the task waits for the remote wake, so it is alive until `open`. A reference keeps the
        // memory afterwards: if the task has moved meanwhile, it may end on another thread at once. What
        // `open` returns is for this thread to do; if it says `leaving` or `refused`, the runnable and
        // `stage` are this thread's (rule 2 of the header).
        unsafe {
            let counted = Alive::new(task).counted();
            let opened = task.as_ref().state.open();
            if opened.leaving || opened.refused {
                if opened.leaving {
                    let stage = &task.as_ref().stage;
                    let delivered = stage.get() == Stage::Delivered;
                    stage.set(if delivered { Stage::LeavingDelivered } else { Stage::Leaving });
                }
                // `Cell::call`, the one function that knows the type, runs the task or lets it leave.
                drop(Runnable::new(task.cast()));
            } else {
                counted.alive().wake();
            }
        }
    }
}

/// Aborts: the task can never be woken again.
#[cold]
fn unreachable_owner() -> ! {
    eprintln!(
        "convoke: a task was woken from another thread, but its executor did not name its owner thread: \
         `Executor::owner_thread` panicked or changed its answer, or `clone` panicked. Aborting."
    );
    std::process::abort()
}
