//! The waker of a task: its header, by which it is known to those who wake it.

#![allow(unsafe_code)]

use core::mem::ManuallyDrop;
use core::ptr::NonNull;
use core::task::{RawWaker, RawWakerVTable, Waker};

use super::header::{TaskHeader, drop_reference};
use super::many_wakers;
use super::state::Access;

impl TaskHeader {
    /// A waker that does not count as a reference: for the time of a poll.
    #[inline]
    pub(super) unsafe fn borrowed_waker(task: NonNull<Self>) -> ManuallyDrop<Waker> {
        // SAFETY: the functions fit the pointer; the caller sees to it that the task outlives the waker, and it is not
        // dropped.
        ManuallyDrop::new(unsafe { Waker::from_raw(raw_waker(task)) })
    }
}

#[inline]
fn raw_waker(task: NonNull<TaskHeader>) -> RawWaker {
    RawWaker::new(task.as_ptr().cast_const().cast(), &WAKER)
}

static WAKER: RawWakerVTable = RawWakerVTable::new(clone_waker, wake, wake_by_ref, drop_waker);

/// # Safety
/// `data` is a task, and the caller has a reference to it; so in all four.
unsafe fn clone_waker(data: *const ()) -> RawWaker {
    // SAFETY: the caller's.
    let task = unsafe { NonNull::new_unchecked(data.cast_mut().cast::<TaskHeader>()) };
    // SAFETY: as above.
    let header = unsafe { task.as_ref() };
    if header.state.try_add_waker(header.from()) {
        raw_waker(task)
    } else {
        // SAFETY: the caller has a reference to the task.
        unsafe { many_wakers::clone(task) }
    }
}

unsafe fn wake(data: *const ()) {
    // SAFETY: the caller's. At home both can be done at once: the task, which has not left, keeps itself.
    unsafe {
        let task = NonNull::new_unchecked(data.cast_mut().cast::<TaskHeader>());
        let header = task.as_ref();
        if header.from() == Access::Local
            && let Some(wake) = header.state.wake_and_drop_at_home()
        {
            return TaskHeader::act(task, wake);
        }
        wake_by_ref(data);
        drop_waker(data);
    }
}

unsafe fn wake_by_ref(data: *const ()) {
    // SAFETY: the caller's.
    unsafe { TaskHeader::wake(NonNull::new_unchecked(data.cast_mut().cast())) };
}

unsafe fn drop_waker(data: *const ()) {
    // SAFETY: the caller's.
    unsafe { drop_reference(NonNull::new_unchecked(data.cast_mut().cast())) };
}
