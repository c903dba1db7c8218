//! A `Box` whose memory comes from a frame allocator.
//!
//! 1. `value` points to memory of `allocator` that holds a live value, or it dangles and the value has no size. The box
//!    owns both until it is dropped or taken apart.
//! 2. The value does not move before it is dropped, or taken out of a box that was never pinned.

#![allow(unsafe_code)]

use core::alloc::Layout;
use core::cell::UnsafeCell;
use core::fmt;
use core::future::Future;
use core::marker::PhantomData;
use core::mem::ManuallyDrop;
use core::ops::{Deref, DerefMut};
use core::pin::Pin;
use core::ptr::NonNull;

use super::{FrameAllocator, system};
use crate::unsize_box;

/// A value in memory of a frame allocator. Two words, with the allocator that the memory goes back to.
///
/// Unlike `Box`, it never makes a shared reference to its value on its own: a future that has started may hold
/// references to its own parts.
pub struct FrameBox<T: ?Sized> {
    value: NonNull<T>,
    allocator: FrameAllocator,
    _owned: PhantomData<T>,
}

// SAFETY: `value` is used through the box alone, which owns it (`new` took it by value), and the allocator is `Send`.
unsafe impl<T: Send + ?Sized> Send for FrameBox<T> {}
// SAFETY: what a shared box gives is a `&T` and its address, and the allocator is `Sync`.
unsafe impl<T: Sync + ?Sized> Sync for FrameBox<T> {}

// The value does not move when the box does.
impl<T: ?Sized> Unpin for FrameBox<T> {}

impl<T> FrameBox<T> {
    /// Moves a value into memory of this allocator.
    ///
    /// # Errors
    /// With the value, if there is no memory for it.
    #[inline]
    pub fn try_new_in(allocator: FrameAllocator, value: T) -> Result<Self, T> {
        let layout = Layout::new::<T>();
        let memory =
            if layout.size() == 0 { Some(layout.dangling_ptr()) } else { allocator.allocate(layout) };
        let Some(memory) = memory else { return Err(value) };
        let memory = memory.cast::<T>();
        // SAFETY: the memory has the layout of `T`, or `T` has no size.
        unsafe { memory.write(value) };
        Ok(Self { value: memory, allocator, _owned: PhantomData })
    }

    /// Moves a value into memory of this allocator, or of the global one if that has none left.
    #[inline]
    pub fn new_in(allocator: FrameAllocator, value: T) -> Self {
        Self::try_new_in(allocator, value)
            .or_else(|value| Self::try_new_in(FrameAllocator::system(), value))
            .unwrap_or_else(|_| {
                let layout = Layout::new::<T>();
                // There is no memory: this ends the process.
                unreachable!("{:?}", system::allocate_or_abort(layout))
            })
    }

    /// Moves a value into memory of this allocator, or of the global one, and pins it there.
    #[inline]
    pub fn pin_in(allocator: FrameAllocator, value: T) -> Pin<Self> {
        Self::into_pin(Self::new_in(allocator, value))
    }

    /// Erases the type of a future.
    #[inline]
    pub fn into_dyn_future<'a, O>(self) -> FrameBox<dyn Future<Output = O> + Send + 'a>
    where
        T: Future<Output = O> + Send + 'a,
    {
        unsize_box!(self, dyn Future<Output = O> + Send + 'a)
    }

    /// Erases the type of a future that need not be `Send`.
    #[inline]
    pub fn into_dyn_local_future<'a, O>(self) -> FrameBox<dyn Future<Output = O> + 'a>
    where
        T: Future<Output = O> + 'a,
    {
        unsize_box!(self, dyn Future<Output = O> + 'a)
    }

    /// Erases the type of a closure.
    #[inline]
    pub fn into_dyn_fn<'a, A, O>(self) -> FrameBox<dyn FnMut(A) -> O + Send + 'a>
    where
        T: FnMut(A) -> O + Send + 'a,
    {
        unsize_box!(self, dyn FnMut(A) -> O + Send + 'a)
    }

    /// Takes the value out, and frees its memory.
    pub fn into_inner(self) -> T {
        let (value, allocator) = self.into_parts();
        let memory = Free { memory: value.cast(), layout: Layout::new::<T>(), allocator: &allocator };
        // SAFETY: rule 1: the box owned the value, which is read once.
        let value = unsafe { value.read() };
        drop(memory);
        value
    }
}

impl<T: ?Sized> FrameBox<T> {
    /// Changes the type of the pointer, to erase the type of the value.
    ///
    /// # Safety
    /// `unsize` returns the address that it is given.
    #[inline]
    pub unsafe fn with_pointer<U: ?Sized>(self, unsize: impl FnOnce(*mut T) -> *mut U) -> FrameBox<U> {
        let (value, allocator) = self.into_parts();
        let value = NonNull::new(unsize(value.as_ptr())).expect("the address stays");
        FrameBox { value, allocator, _owned: PhantomData }
    }

    /// Pins the value, which does not move any more.
    #[inline]
    pub fn into_pin(this: Self) -> Pin<Self> {
        // SAFETY: rule 2: the value moves only by `into_inner`, which needs a box that is not pinned.
        unsafe { Pin::new_unchecked(this) }
    }

    /// Returns the address of the value, which is valid until the box is dropped.
    #[inline]
    pub fn pointer(this: &Self) -> NonNull<T> {
        this.value
    }

    /// Returns the allocator that the memory goes back to.
    #[inline]
    pub fn allocator(this: &Self) -> &FrameAllocator {
        &this.allocator
    }

    #[inline]
    fn into_parts(self) -> (NonNull<T>, FrameAllocator) {
        let mut this = ManuallyDrop::new(self);
        (this.value, core::mem::take(&mut this.allocator))
    }
}

/// Frees memory, also if what was in it panics when it is dropped.
struct Free<'a> {
    memory: NonNull<u8>,
    layout: Layout,
    allocator: &'a FrameAllocator,
}

impl Drop for Free<'_> {
    #[inline]
    fn drop(&mut self) {
        if self.layout.size() != 0 {
            // SAFETY: rule 1: it came from this allocator with this layout, and its contents are gone.
            unsafe { self.allocator.deallocate(self.memory, self.layout) };
        }
    }
}

impl<T: ?Sized> Drop for FrameBox<T> {
    // Not inlined: it is copied to wherever one is dropped.
    #[inline(never)]
    fn drop(&mut self) {
        // SAFETY: rule 1: the value is alive until it is dropped below. The contents of a cell are not read through a
        // shared reference to the cell, which has the same layout.
        let layout = Layout::for_value(unsafe { &*(self.value.as_ptr() as *const UnsafeCell<T>) });
        let _memory = Free { memory: self.value.cast(), layout, allocator: &self.allocator };
        // SAFETY: rule 1: the value is owned, and is not used again.
        unsafe { self.value.drop_in_place() };
    }
}

impl<T: ?Sized> Deref for FrameBox<T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: rule 1: the value is alive, and borrowed with the box.
        unsafe { self.value.as_ref() }
    }
}

impl<T: ?Sized> DerefMut for FrameBox<T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: rule 1: the value is alive, and borrowed with the box.
        unsafe { self.value.as_mut() }
    }
}

impl<T: ?Sized> fmt::Debug for FrameBox<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FrameBox").field("allocator", &self.allocator).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Panic;
    use crate::frames::{Bounded, Counting};

    #[test]
    fn a_value_goes_back_where_it_came_from_whether_dropped_or_taken_out() {
        let counting = Counting::new(FrameAllocator::system());
        let frames = FrameAllocator::new(counting.clone());
        let boxed = FrameBox::new_in(frames.clone(), String::from("value"));
        assert_eq!((boxed.as_str(), counting.live()), ("value", 1));
        assert_eq!(boxed.into_inner(), "value");
        drop(FrameBox::pin_in(frames.clone(), [0_u8; 40]));
        drop(FrameBox::new_in(frames, ()));
        assert_eq!((counting.live(), counting.total()), (0, 2), "a value without a size needs no memory");
    }

    #[test]
    fn the_memory_of_a_value_that_panics_when_it_is_dropped_is_freed() {
        struct Panics;
        impl Drop for Panics {
            fn drop(&mut self) {
                panic!("dropped");
            }
        }
        let counting = Counting::new(FrameAllocator::system());
        let boxed = FrameBox::new_in(FrameAllocator::new(counting.clone()), (7_u8, Panics));
        assert!(Panic::catch(|| drop(boxed)).is_err());
        assert_eq!(counting.live(), 0);
    }

    #[test]
    fn a_full_allocator_hands_the_value_back_or_the_global_one_serves() {
        let full = FrameAllocator::new(Bounded::new(0));
        assert_eq!(FrameBox::try_new_in(full.clone(), 7_u64).unwrap_err(), 7);
        let boxed = FrameBox::new_in(full, 7_u64);
        assert_eq!((*boxed, FrameBox::allocator(&boxed)), (7, &FrameAllocator::system()));
    }
}
