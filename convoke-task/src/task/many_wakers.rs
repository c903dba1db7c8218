//! Wakers of a task beyond those that its state can count: about four million. They are counted in a table of
//! the process with one entry for each such task; the entry holds one reference to the task.

#![allow(unsafe_code)]

use core::task::{RawWaker, RawWakerVTable};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::reference::{Alive, TaskRef};
use super::waker::task_of;

/// Each task with such wakers: its address, and their number. There is hardly ever one, so a list will do: a map would be more code
/// than the rest of this file.
static WAKERS: Mutex<Vec<(usize, usize)>> = Mutex::new(Vec::new());

/// The functions of these wakers. Closures, so that nothing but a waker can call them: their `data` is that
/// of a waker with this vtable, and the entry of its task holds a reference for as long as the waker exists.
static WAKER: RawWakerVTable = RawWakerVTable::new(
    // SAFETY: the entry holds a reference.
    |data| clone(unsafe { task_of(data) }),
    |data| {
        // SAFETY: the entry holds a reference.
        let task = unsafe { task_of(data) };
        task.wake();
        drop_waker(task);
    },
    // SAFETY: the entry holds a reference.
    |data| unsafe { task_of(data) }.wake(),
    // SAFETY: the entry holds a reference.
    |data| drop_waker(unsafe { task_of(data) }),
);

/// Creates a waker that is counted here.
#[cold]
pub(super) fn clone(task: Alive<'_>) -> RawWaker {
    let mut wakers = lock();
    let address = task.address().addr().get();
    match wakers.iter_mut().find(|(known, _)| *known == address) {
        Some((_, count)) => *count += 1,
        None => {
            wakers.push((address, 1));
            // The entry owns the reference.
            task.counted().into_counted();
        }
    }
    RawWaker::new(task.address().as_ptr().cast_const().cast(), &WAKER)
}

/// Counts a waker down that is counted here.
fn drop_waker(task: Alive<'_>) {
    let was_last = {
        let mut wakers = lock();
        let address = task.address().addr().get();
        let at = wakers.iter().position(|(known, _)| *known == address).expect("this waker is counted");
        wakers[at].1 -= 1;
        let was_last = wakers[at].1 == 0;
        if was_last {
            wakers.swap_remove(at);
        }
        was_last
    };
    if was_last {
        // Without the lock: this may free the task, and what it holds may own wakers.
        // SAFETY: the entry that was just removed owned this reference.
        drop(unsafe { TaskRef::from_counted(task.address()) });
    }
}

fn lock() -> MutexGuard<'static, Vec<(usize, usize)>> {
    WAKERS.lock().unwrap_or_else(PoisonError::into_inner)
}
