//! Models of counted pointers and wakers in memory of a frame allocator: the last reference sees what was done through the
//! others, and frees the value once.

#![allow(unsafe_code)]

use crate::model::{Count, Reached, explore};
use convoke_core::env::FrameAllocator;
use convoke_core::raw::sync::{UnsafeCell, thread};
use convoke_core::raw::{FrameArc, FrameWake};
use convoke_testing::workshop::frames::Frames;

/// A value that each of two references writes to once, and its destructor reads. loom reports an access that nothing orders.
struct Written {
    by: [UnsafeCell<u32>; 2],
    dropped: Count,
}

// SAFETY: reference `n` alone writes to `by[n]`, and the destructor is called when there is no reference.
unsafe impl Sync for Written {}

impl Written {
    fn shared(frames: &Frames, dropped: &Count) -> FrameArc<Self> {
        let by = [UnsafeCell::new(0), UnsafeCell::new(0)];
        let value = Self { by, dropped: dropped.clone() };
        FrameArc::new_in(&FrameAllocator::new(frames.clone()), value)
    }

    fn write(&self, reference: usize) {
        // SAFETY: see `Sync`.
        self.by[reference].with_mut(|value| unsafe { *value = 7 });
    }

    /// Returns the sum of what was written. The caller has the only reference.
    fn sum(&self) -> u32 {
        // SAFETY: nobody writes any more.
        self.by.iter().map(|value| value.with(|value| unsafe { *value })).sum()
    }
}

impl Drop for Written {
    fn drop(&mut self) {
        self.sum();
        self.dropped.add();
    }
}

impl FrameWake for Written {
    fn wake(this: &FrameArc<Self>) {
        this.write(1);
    }
}

#[test]
fn of_two_references_that_are_dropped_at_once_the_last_one_frees_the_value() {
    explore(5, || {
        let (frames, dropped) = (Frames::at_most(1), Count::default());
        let one = Written::shared(&frames, &dropped);
        let other = one.clone();
        let thread = thread::spawn(move || {
            other.write(1);
            drop(other.clone());
            drop(other);
        });
        one.write(0);
        drop(one);
        thread.join().unwrap();
        assert_eq!((dropped.get(), frames.counts()), (1, (0, 1)));
    });
}

#[test]
fn of_two_references_one_takes_the_value_out() {
    static HERE: Reached = Reached::new();
    static THERE: Reached = Reached::new();
    explore(5, || {
        let (frames, dropped) = (Frames::at_most(1), Count::default());
        let one = Written::shared(&frames, &dropped);
        let other = one.clone();
        let thread = thread::spawn(move || {
            other.write(1);
            FrameArc::into_inner(other).map(|value| value.sum())
        });
        one.write(0);
        let here = FrameArc::into_inner(one).map(|value| value.sum());
        let there = thread.join().unwrap();
        assert_eq!(here.or(there), Some(14));
        assert_eq!(here.xor(there), Some(14), "one of them");
        assert_eq!((dropped.get(), frames.counts()), (1, (0, 1)));
        HERE.here_if(here.is_some());
        THERE.here_if(there.is_some());
    });
    HERE.assert("it was taken out here");
    THERE.assert("it was taken out by the other thread");
}

#[test]
fn the_value_is_unique_after_the_other_reference_was_dropped() {
    static UNIQUE: Reached = Reached::new();
    static SHARED: Reached = Reached::new();
    explore(5, || {
        let (frames, dropped) = (Frames::at_most(1), Count::default());
        let mut one = Written::shared(&frames, &dropped);
        let other = one.clone();
        let thread = thread::spawn(move || {
            other.write(1);
            drop(other);
        });
        let unique = FrameArc::get_mut(&mut one).map(|value| value.sum());
        assert!(unique.is_none_or(|sum| sum == 7));
        thread.join().unwrap();
        one.wait_until_unique();
        assert_eq!(one.sum(), 7);
        UNIQUE.here_if(unique.is_some());
        SHARED.here_if(unique.is_none());
    });
    UNIQUE.assert("the other was gone");
    SHARED.assert("the other was there");
}

#[test]
fn a_waker_that_is_used_up_on_another_thread_frees_the_value_last_or_not() {
    explore(5, || {
        let (frames, dropped) = (Frames::at_most(1), Count::default());
        let value = Written::shared(&frames, &dropped);
        let waker = value.clone().into_waker();
        let thread = thread::spawn(move || {
            drop(waker.clone());
            waker.wake();
        });
        value.write(0);
        drop(value);
        thread.join().unwrap();
        assert_eq!((dropped.get(), frames.counts()), (1, (0, 1)));
    });
}
