//! Wakers of a task beyond those that its state can count: about four million. They are counted in a table of
//! the process with one entry for each such task; the entry holds one reference to the task.

use core::task::{RawWaker, RawWakerVTable};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::reference::{Alive, TaskRef};
use super::waker::{WakerRef, vtable};

/// Each task with such wakers: its address, and their number. There is hardly ever one, so a list will do: a map would be more code
/// than the rest of this file.
static WAKERS: Mutex<Vec<(usize, usize)>> = Mutex::new(Vec::new());

/// The functions of these wakers.
static WAKER: RawWakerVTable = vtable::<InTable>();

/// The reference of a waker that is counted here: the one that the entry of its task holds for all of them. It
/// is dropped with the last of them, and given up uncounted by the others.
struct InTable(Option<TaskRef>);

impl WakerRef for InTable {
    fn of_waker(task: TaskRef) -> Self {
        Self(Some(task))
    }

    fn alive(&self) -> Alive<'_> {
        self.0.as_ref().expect("only `drop` takes it").alive()
    }

    fn new_waker(task: Alive<'_>) -> RawWaker {
        clone(task)
    }
}

impl Drop for InTable {
    fn drop(&mut self) {
        let was_last = {
            let mut wakers = lock();
            let address = self.alive().address().addr().get();
            let at = wakers.iter().position(|(known, _)| *known == address).expect("this waker is counted");
            wakers[at].1 -= 1;
            let was_last = wakers[at].1 == 0;
            if was_last {
                wakers.swap_remove(at);
            }
            was_last
        };
        let task = self.0.take().expect("only `drop` takes it");
        if was_last {
            // Without the lock: this may free the task, and what it holds may own wakers.
            drop(task);
        } else {
            task.into_counted();
        }
    }
}

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

fn lock() -> MutexGuard<'static, Vec<(usize, usize)>> {
    WAKERS.lock().unwrap_or_else(PoisonError::into_inner)
}
