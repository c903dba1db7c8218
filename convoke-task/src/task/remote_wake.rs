//! Letters to a task that lives at home, from those who are away: to wake it, to ask it to stop, or to hand back its runnable.

#![allow(unsafe_code)]

use core::ptr::NonNull;

use convoke_core::raw::{RemoteWake, Runnable, post_contained};
use convoke_core::{Executor, Panic};

use super::header::{Stage, TaskHeader, drop_reference};
use super::parent_link::ParentLink;

impl TaskHeader {
    /// # Safety
    /// The state has said that a letter is to be sent: rule 3 then lets us look at the place.
    #[cold]
    pub(super) unsafe fn send(task: NonNull<Self>) {
        // SAFETY: the task waits for the letter.
        unsafe { Self::send_in(task, NonNull::from(task.as_ref().place())) };
    }

    /// Sends the letter to the home of tasks that are started in this place.
    ///
    /// Aborts the process if the executor, which may be the program's own, panics in `clone` or `home`, or names another home than
    /// it did when the place was made: the task waits for the letter, and nobody else may touch it.
    ///
    /// # Safety
    /// The state has said that a letter is to be sent, and this is the task's place, or was.
    pub(super) unsafe fn send_in(task: NonNull<Self>, place: NonNull<ParentLink>) {
        // SAFETY: the task waits for the letter, and so its place is there until that is opened. From then on this thread uses only
        // a handle of its own, in which the home lies.
        unsafe {
            let place = place.as_ref();
            let Ok(executor) = Panic::catch(|| place.env().executor().clone()) else { unreachable_home() };
            let Ok(Some(home)) = Panic::catch(|| executor.owner_thread()) else { unreachable_home() };
            if home.id() != place.home() {
                unreachable_home();
            }
            let letter = RemoteWake::new(task.cast(), Self::open_letter);
            if let Some(runnable) = home.send(letter) {
                post_contained(executor, runnable);
            }
        }
    }

    /// # Safety
    /// Called once for a letter, at home.
    unsafe fn open_letter(task: NonNull<()>) {
        let task = task.cast::<Self>();
        // SAFETY: the task waits for its letter; what the state says is ours to do. A reference of our own for afterwards: if
        // the task has moved meanwhile, it may end elsewhere as soon as the letter is opened.
        unsafe {
            Self::add_reference(task);
            let opened = task.as_ref().state.open();
            if opened.leaving || opened.refused {
                if opened.leaving {
                    let stage = &task.as_ref().stage;
                    let delivered = stage.get() == Stage::Delivered;
                    stage.set(if delivered { Stage::LeavingDelivered } else { Stage::Leaving });
                }
                // Ours to run, or to take to its end: by the one function that knows its type.
                drop(Runnable::new(task.cast()));
            } else {
                Self::wake(task);
            }
            drop_reference(task);
        }
    }
}

#[cold]
fn unreachable_home() -> ! {
    eprintln!(
        "convoke: a task was woken from another thread, and its executor did not name the home that the task lives in: \
         `Executor::home` panicked or changed its answer, or `clone` panicked. Aborting."
    );
    std::process::abort()
}
