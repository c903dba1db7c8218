//! The waker of a task: a counted pointer to its header.

#![allow(unsafe_code)]

use core::mem::ManuallyDrop;
use core::ptr::NonNull;
use core::task::{RawWaker, RawWakerVTable, Waker};

use super::header::{TaskHeader, drop_reference};
use super::many_wakers;
use super::state::Access;

impl TaskHeader {
    /// Returns a waker that does not count as a reference, for the time of a poll.
    ///
    /// # Safety
    /// The task outlives the waker, unless only its vtable is used.
    #[inline]
    pub(super) unsafe fn borrowed_waker(task: NonNull<Self>) -> ManuallyDrop<Waker> {
        // SAFETY: the vtable fits the pointer. The task outlives the waker: the caller's promise. The waker
        // is not dropped, and so gives up no reference.
        ManuallyDrop::new(unsafe { Waker::from_raw(raw_waker(task)) })
    }
}

#[inline]
fn raw_waker(task: NonNull<TaskHeader>) -> RawWaker {
    RawWaker::new(task.as_ptr().cast_const().cast(), &WAKER)
}

static WAKER: RawWakerVTable = RawWakerVTable::new(clone_waker, wake, wake_by_ref, drop_waker);

/// # Safety
/// `data` is a task to which the caller has a reference; so in all four functions.
unsafe fn clone_waker(data: *const ()) -> RawWaker {
    // SAFETY: the data of a waker with this vtable is the address of its task.
    let task = unsafe { NonNull::new_unchecked(data.cast_mut().cast::<TaskHeader>()) };
    // SAFETY: the waker that is cloned keeps the task alive.
    let header = unsafe { task.as_ref() };
    if header.state.try_add_waker(header.access()) {
        raw_waker(task)
    } else {
        // SAFETY: the waker that is cloned is a reference to the task.
        unsafe { many_wakers::clone(task) }
    }
}

unsafe fn wake(data: *const ()) {
    // SAFETY: the waker is a reference to its task, and is used up here. On the owner thread both steps are
    // one: a task that has not left keeps itself alive.
    unsafe {
        let task = NonNull::new_unchecked(data.cast_mut().cast::<TaskHeader>());
        let header = task.as_ref();
        if header.access() == Access::Local
            && let Some(wake) = header.state.wake_and_drop_at_home()
        {
            return TaskHeader::act(task, wake);
        }
        wake_by_ref(data);
        drop_waker(data);
    }
}

unsafe fn wake_by_ref(data: *const ()) {
    // SAFETY: the waker is a reference to its task.
    unsafe { TaskHeader::wake(NonNull::new_unchecked(data.cast_mut().cast())) };
}

unsafe fn drop_waker(data: *const ()) {
    // SAFETY: the waker is a reference to its task, and is used up here.
    unsafe { drop_reference(NonNull::new_unchecked(data.cast_mut().cast())) };
}
