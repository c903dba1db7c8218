//! Letters to a task that lives at home, from those who are away: to wake it, to ask it to stop, or to hand back its runnable.

use core::ptr::NonNull;

use convoke_core::raw::{Letter, Runnable};
use convoke_core::{Executor, Panic};

use super::header::{Stage, TaskHeader, drop_reference};
use super::place::Place;

impl TaskHeader {
    /// # Safety
    /// The state has said that a letter is to be sent: rule 3 then lets us look at the place.
    #[cold]
    pub(super) unsafe fn send(task: NonNull<Self>) {
        // SAFETY: the task waits for the letter.
        unsafe { Self::send_in(task, NonNull::from(task.as_ref().place())) };
    }

    /// # Safety
    /// The state has said that a letter is to be sent, and this is the task's place, or was.
    pub(super) unsafe fn send_in(task: NonNull<Self>, place: NonNull<Place>) {
        // SAFETY: the task waits for the letter. A handle of our own, for as soon as the letter is sent the task may leave.
        unsafe {
            let executor = place.as_ref().env().executor().clone();
            // Its own home, and no other: the executor may be one of the program's, and name another one now.
            let home = executor.home().filter(|home| home.id() == place.as_ref().home());
            let Some(home) = home else { homeless() };
            let letter = Letter::new(task.cast(), Self::open_letter);
            if let Some(runnable) = home.send(letter) {
                // Whoever wakes the task has nothing to do with a panic of its executor, which the panic hook has reported.
                let _ = Panic::catch(|| executor.post(runnable));
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
fn homeless() -> ! {
    eprintln!("convoke: an executor does not name the home any more that it had named for a task. Aborting.");
    std::process::abort()
}
