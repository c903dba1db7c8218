//! A waker whose memory comes from a frame allocator: `std::task::Wake` is for `Arc`s alone.

#![allow(unsafe_code)]

use core::mem::ManuallyDrop;
use core::ptr::NonNull;
use core::task::{RawWaker, RawWakerVTable, Waker};

use super::frame_arc::FrameArc;

/// A value that is woken by reference, on any thread.
pub trait FrameWake: Send + Sync + 'static {
    /// Wakes the value.
    fn wake(this: &FrameArc<Self>)
    where
        Self: Sized;
}

impl<T: FrameWake> FrameArc<T> {
    /// Returns a waker that holds this reference.
    pub fn into_waker(self) -> Waker {
        let data = FrameArc::as_raw(&ManuallyDrop::new(self)).as_ptr().cast_const();
        // SAFETY: the functions below keep the contract of `RawWaker`: the reference that was forgotten above belongs to
        // the waker, each clone counts one of its own, and the value may be woken and dropped on any thread.
        unsafe { Waker::from_raw(Functions::<T>::waker(data)) }
    }
}

/// The functions of a waker of this type.
struct Functions<T>(T);

impl<T: FrameWake> Functions<T> {
    /// Returns a waker with this data. All come from here: their tables have one address, which `will_wake` compares.
    fn waker(data: *const ()) -> RawWaker {
        let table = &const { RawWakerVTable::new(Self::clone, Self::wake, Self::wake_by_ref, Self::drop) };
        RawWaker::new(data, table)
    }

    /// Returns the reference that a waker with this data holds.
    ///
    /// # Safety
    /// The data is that of a live waker of this table. The reference is used up once for the waker.
    unsafe fn reference(data: *const ()) -> FrameArc<T> {
        // SAFETY: `into_waker` and `clone` made the data of an address, and counted a reference for the waker.
        unsafe { FrameArc::from_raw(NonNull::new_unchecked(data.cast_mut())) }
    }

    unsafe fn clone(data: *const ()) -> RawWaker {
        // SAFETY: the contract of `RawWaker`: this borrows the waker that is cloned, which is alive. `ManuallyDrop` leaves it
        // its reference.
        let other = ManuallyDrop::new(unsafe { Self::reference(data) });
        core::mem::forget(FrameArc::clone(&other));
        Self::waker(data)
    }

    unsafe fn wake(data: *const ()) {
        // SAFETY: the contract of `RawWaker`: this uses a waker up, and is called once for it. `waker` gave it this table
        // with its data.
        T::wake(&unsafe { Self::reference(data) });
    }

    unsafe fn wake_by_ref(data: *const ()) {
        // SAFETY: the contract of `RawWaker`: this borrows a waker, which is alive. `ManuallyDrop` leaves it its reference.
        T::wake(&ManuallyDrop::new(unsafe { Self::reference(data) }));
    }

    unsafe fn drop(data: *const ()) {
        // SAFETY: the contract of `RawWaker`: this uses a waker up, and is called once for it. `waker` gave it this table
        // with its data.
        drop(unsafe { Self::reference(data) });
    }
}

#[cfg(all(test, not(feature = "loom")))]
mod tests {
    use super::*;
    use crate::frames::{Counting, FrameAllocator};
    use core::sync::atomic::{AtomicUsize, Ordering};

    struct Woken(AtomicUsize);

    impl FrameWake for Woken {
        fn wake(this: &FrameArc<Self>) {
            this.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[test]
    fn clones_wake_the_same_value_and_the_last_one_frees_it() {
        let counting = Counting::new(FrameAllocator::system());
        let woken = FrameArc::new_in(&FrameAllocator::new(counting.clone()), Woken(AtomicUsize::new(0)));
        let waker = woken.clone().into_waker();
        let other = waker.clone();
        assert!(waker.will_wake(&other));
        waker.wake_by_ref();
        waker.wake();
        assert_eq!(woken.0.load(Ordering::Relaxed), 2);
        drop(woken);
        assert_eq!(counting.live(), 1);
        drop(other);
        assert_eq!(counting.live(), 0);
    }
}
