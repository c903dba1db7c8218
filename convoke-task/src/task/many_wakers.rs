//! Wakers of a task beyond those that its state can count: about four million. They are counted in a table of
//! the process with one entry for each such task; the entry holds one reference to the task.

use core::task::{RawWaker, RawWakerVTable};
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::reference::{Alive, TaskRef};
use super::waker::{WakerRef, vtable};

/// The number of these wakers, by the address of their task.
static WAKERS: Mutex<BTreeMap<usize, usize>> = Mutex::new(BTreeMap::new());

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
            let count = wakers.get_mut(&address).expect("this waker is counted");
            *count -= 1;
            let was_last = *count == 0;
            if was_last {
                wakers.remove(&address);
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
    let count = wakers.entry(task.address().addr().get()).or_insert(0);
    if *count == 0 {
        // The entry owns the reference.
        task.counted().into_counted();
    }
    *count += 1;
    RawWaker::new(task.address().as_ptr().cast_const().cast(), &WAKER)
}

fn lock() -> MutexGuard<'static, BTreeMap<usize, usize>> {
    WAKERS.lock().unwrap_or_else(PoisonError::into_inner)
}
