//! Remote wakes: how a thread that is not the owner thread of a task wakes it, asks it to stop, or hands back
//! its runnable.

#![allow(unsafe_code)]

use core::ptr::NonNull;

use convoke_core::raw::{RemoteWake, Runnable, abort_with, post_contained};
use convoke_core::{Executor, Panic};

use super::header::{Stage, TaskHeader};
use super::parent_link::ParentLink;
use super::reference::{Alive, TaskRef};

/// Sends the remote wake to the owner thread of tasks that are spawned under this parent link.
///
/// Aborts the process if the executor, which may be the program's own, panics in `clone` or `owner_thread`, or
/// names another owner thread than when the link was made: the task waits for the remote wake, and no other
/// thread may touch it.
///
/// # Safety
/// The state has told this thread to send the remote wake (`Wake::Send`), and `link` is, or was, the task's
/// parent link.
#[cold]
pub(super) unsafe fn send_remote_wake(task: NonNull<TaskHeader>, link: NonNull<ParentLink>) {
    // SAFETY: rule 3 of the header: the task waits for the remote wake, so its parent link is alive until that
    // is received. From then on this thread uses only its own clone of the executor, which keeps the owner
    // thread alive.
    unsafe {
        let link = link.as_ref();
        let Ok(executor) = Panic::catch(|| link.env().executor().clone()) else { unreachable_owner() };
        let Ok(Some(owner)) = Panic::catch(|| executor.owner_thread()) else { unreachable_owner() };
        if owner.id() != link.owner_id() {
            unreachable_owner();
        }
        let wake = RemoteWake::new(task.cast(), |task| {
            // SAFETY: fact 2 of `Alive`: the task waits for the remote wake. The reference keeps the memory
            // afterwards: if the task has moved meanwhile, it may end on another thread at once.
            receive(Alive::new(task.cast()).counted());
        });
        if let Some(runnable) = owner.send(wake) {
            post_contained(executor, runnable);
        }
    }
}

/// Receives the remote wake, on the owner thread.
fn receive(task: TaskRef) {
    let header = task.alive().header();
    let opened = header.state.open();
    if !(opened.leaving || opened.refused) {
        return task.alive().wake();
    }
    if opened.leaving {
        let stage = &header.stage;
        let delivered = stage.get() == Stage::Delivered;
        stage.set(if delivered { Stage::LeavingDelivered } else { Stage::Leaving });
    }
    // `Cell::call`, the one function that knows the type, runs the task or lets it leave.
    // SAFETY: `open` has handed the runnable and `stage` to this thread: rule 2 of the header.
    drop(unsafe { Runnable::new(task.alive().address().cast()) });
}

/// Aborts: the task can never be woken again.
#[cold]
fn unreachable_owner() -> ! {
    abort_with(
        &"a task was woken from another thread, but its executor did not name its owner thread: \
          `Executor::owner_thread` panicked or changed its answer, or `clone` panicked. Aborting.",
    )
}
