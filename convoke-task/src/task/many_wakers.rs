//! Wakers of a task beyond those that its state can count: about four million. They are counted in a table of
//! the process with one entry for each such task; the entry holds one reference to the task.

#![allow(unsafe_code)]

use core::ptr::NonNull;
use core::task::{RawWaker, RawWakerVTable};
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::header::{TaskHeader, drop_reference};

/// The number of these wakers, by the address of their task.
static WAKERS: Mutex<BTreeMap<usize, usize>> = Mutex::new(BTreeMap::new());

static WAKER: RawWakerVTable = RawWakerVTable::new(clone_waker, wake, wake_by_ref, drop_waker);

/// Creates a waker that is counted here.
///
/// # Safety
/// The caller has a reference to the task.
#[cold]
pub(super) unsafe fn clone(task: NonNull<TaskHeader>) -> RawWaker {
    let mut wakers = lock();
    let count = wakers.entry(task.addr().get()).or_insert(0);
    if *count == 0 {
        // SAFETY: the caller has a reference, so the task is alive.
        unsafe { TaskHeader::add_reference(task) };
    }
    *count += 1;
    RawWaker::new(task.as_ptr().cast_const().cast(), &WAKER)
}

/// # Safety
/// `data` is the task of a waker that is counted here; so in all four.
unsafe fn clone_waker(data: *const ()) -> RawWaker {
    // SAFETY: the entry of this waker's task holds a reference for as long as the waker exists.
    unsafe { clone(task_of(data)) }
}

unsafe fn wake(data: *const ()) {
    // SAFETY: `data` is the task of a waker that is counted here. The second call uses that waker up.
    unsafe {
        wake_by_ref(data);
        drop_waker(data);
    }
}

unsafe fn wake_by_ref(data: *const ()) {
    // SAFETY: the entry of this waker's task holds a reference.
    unsafe { TaskHeader::wake(task_of(data)) };
}

unsafe fn drop_waker(data: *const ()) {
    // SAFETY: `data` came from `clone`.
    let task = unsafe { task_of(data) };
    let was_last = {
        let mut wakers = lock();
        let address = task.addr().get();
        let count = wakers.get_mut(&address).expect("this waker is counted");
        *count -= 1;
        let was_last = *count == 0;
        if was_last {
            wakers.remove(&address);
        }
        was_last
    };
    if was_last {
        // Without the lock: this may free the task, and what it holds may own wakers.
        // SAFETY: the entry that was just removed held this reference.
        unsafe { drop_reference(task) };
    }
}

/// Returns the task of a waker that is counted here.
///
/// # Safety
/// `data` came from `clone`.
unsafe fn task_of(data: *const ()) -> NonNull<TaskHeader> {
    // SAFETY: `clone` put the address of a task there, which is not null.
    unsafe { NonNull::new_unchecked(data.cast_mut().cast()) }
}

fn lock() -> MutexGuard<'static, BTreeMap<usize, usize>> {
    WAKERS.lock().unwrap_or_else(PoisonError::into_inner)
}
