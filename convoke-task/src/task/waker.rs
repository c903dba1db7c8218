//! The waker of a task: a counted pointer to its header.

#![allow(unsafe_code)]

use core::mem::ManuallyDrop;
use core::ptr::NonNull;
use core::task::{RawWaker, RawWakerVTable, Waker};

use super::header::TaskHeader;
use super::many_wakers;
use super::reference::{Alive, TaskRef};

impl Alive<'_> {
    /// Calls `f` with a waker of the task, which does not count as a reference.
    // Not a method of `Inside`: a waker needs a pointer to the whole task, and `Inside` is a reference to its header.
    #[inline]
    pub(super) fn with_waker<R>(self, f: impl FnOnce(&Waker) -> R) -> R {
        // SAFETY: the vtable fits the pointer. The task is alive during `f`. The waker is not dropped, and so gives up
        // no reference.
        let waker = ManuallyDrop::new(unsafe { Waker::from_raw(raw_waker(self.address())) });
        f(&waker)
    }
}

#[inline]
fn raw_waker(task: NonNull<TaskHeader>) -> RawWaker {
    RawWaker::new(task.as_ptr().cast_const().cast(), &WAKER)
}

/// The functions of a waker. Closures, so that nothing but a waker can call them: their `data` is that of a
/// waker with this vtable, which is a reference to its task.
pub(super) static WAKER: RawWakerVTable = RawWakerVTable::new(
    // SAFETY: the waker that is cloned keeps the task alive.
    |data| clone_waker(unsafe { task_of(data) }),
    // SAFETY: the waker is a counted reference, and is used up here.
    |data| unsafe { TaskRef::from_counted(task_of(data).address()) }.wake_and_drop(),
    // SAFETY: the waker keeps the task alive.
    |data| unsafe { task_of(data) }.wake(),
    // SAFETY: the waker is a counted reference, and is used up here.
    |data| drop(unsafe { TaskRef::from_counted(task_of(data).address()) }),
);

fn clone_waker(task: Alive<'_>) -> RawWaker {
    let header = task.header();
    if header.state.try_add_waker(header.access()) {
        raw_waker(task.address())
    } else {
        many_wakers::clone(task)
    }
}

/// Returns the task of a waker.
///
/// # Safety
/// `data` is that of a waker of a task, which exists for `'a`.
#[inline]
pub(super) unsafe fn task_of<'a>(data: *const ()) -> Alive<'a> {
    // SAFETY: the data of a task's waker is the address of the task, which is not null. The waker is a
    // reference.
    unsafe { Alive::new(NonNull::new_unchecked(data.cast_mut().cast())) }
}
