//! The waker of a task: a counted pointer to its header.

#![allow(unsafe_code)]

use core::hint::cold_path;
use core::mem::ManuallyDrop;
use core::ptr::NonNull;
use core::task::{RawWaker, RawWakerVTable, Waker};

use super::header::TaskHeader;
use super::many_wakers;
use super::reference::{Alive, TaskRef};

/// A waker of a task that does not count as a reference, for as long as the task is known to be alive.
pub(super) struct BorrowedWaker<'a> {
    waker: ManuallyDrop<Waker>,
    _task: Alive<'a>,
}

impl<'a> Alive<'a> {
    /// Returns a waker of the task, which does not count as a reference.
    // Not a method of `Inside`: a waker needs a pointer to the whole task, and `Inside` is a reference to its header.
    #[inline]
    pub(super) fn waker(self) -> BorrowedWaker<'a> {
        // SAFETY: the vtable fits the pointer. The task is alive for as long as the waker is lent. It is not dropped,
        // and so gives up no reference.
        let waker = ManuallyDrop::new(unsafe { Waker::from_raw(raw_waker(self.address())) });
        BorrowedWaker { waker, _task: self }
    }
}

impl BorrowedWaker<'_> {
    /// Lends the waker.
    #[inline]
    pub(super) fn get(&self) -> &Waker {
        &self.waker
    }
}

#[inline]
fn raw_waker(task: NonNull<TaskHeader>) -> RawWaker {
    RawWaker::new(task.as_ptr().cast_const().cast(), &WAKER)
}

/// A reference of a waker to its task, as it is counted.
pub(super) trait WakerRef: Sized {
    /// Creates one from the reference to the task that the waker has.
    fn of_waker(task: TaskRef) -> Self;

    /// Borrows the reference.
    fn alive(&self) -> Alive<'_>;

    /// Creates another waker of the task.
    fn new_waker(task: Alive<'_>) -> RawWaker;

    /// Wakes the task, and drops the reference.
    fn wake_and_drop(self) {
        self.alive().wake();
    }
}

impl WakerRef for TaskRef {
    #[inline]
    fn of_waker(task: TaskRef) -> Self {
        task
    }

    #[inline]
    fn alive(&self) -> Alive<'_> {
        self.alive()
    }

    fn new_waker(task: Alive<'_>) -> RawWaker {
        let header = task.header();
        if !header.state.try_add_waker(header.access()) {
            cold_path();
            return many_wakers::clone(task);
        }
        raw_waker(task.address())
    }

    #[inline]
    fn wake_and_drop(self) {
        self.wake_and_drop();
    }
}

/// Creates the functions of wakers with references of this type. Closures, so that nothing but a waker can call
/// them: their `data` is that of a waker with this vtable.
pub(super) const fn vtable<R: WakerRef>() -> RawWakerVTable {
    RawWakerVTable::new(
        // SAFETY: the waker that is cloned exists, and keeps the task alive.
        |data| R::new_waker(unsafe { reference::<R>(data) }.alive()),
        // SAFETY: `Waker::wake` calls this once, with the waker that it consumes: its reference is given up here.
        |data| ManuallyDrop::into_inner(unsafe { reference::<R>(data) }).wake_and_drop(),
        // SAFETY: the waker exists, and keeps the task alive.
        |data| unsafe { reference::<R>(data) }.alive().wake(),
        // SAFETY: the destructor of `Waker` calls this once, last: its reference is given up here.
        |data| drop(ManuallyDrop::into_inner(unsafe { reference::<R>(data) })),
    )
}

/// The functions of a waker that is counted in the state of its task.
pub(super) static WAKER: RawWakerVTable = vtable::<TaskRef>();

/// Returns the reference of a waker.
///
/// # Safety
/// `data` is that of a waker of a task with references of this type, which exists while the result is used. The
/// result is dropped only if the waker is used up.
#[inline]
pub(super) unsafe fn reference<R: WakerRef>(data: *const ()) -> ManuallyDrop<R> {
    // SAFETY: the data of a task's waker is the address of the task, which is not null. The waker refers to the
    // task, and that reference is given up only if the result is dropped.
    ManuallyDrop::new(R::of_waker(unsafe {
        TaskRef::from_counted(NonNull::new_unchecked(data.cast_mut().cast()))
    }))
}
