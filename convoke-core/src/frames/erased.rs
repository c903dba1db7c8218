//! An allocator of any type behind a pointer of one word.
//!
//! 1. The pointer of a [`Counted`] leads to `SYSTEM`, or it came from `Arc::into_raw` and owns one count.
//!
//! An allocator may panic: the contract of `Allocator` does not forbid it. Code that allocates or frees a
//! frame must not be unwound. So panics are caught here, after the panic hook has reported them. A panic in
//! `allocate` counts as no memory left; one in `deallocate`, or in the destructor of the allocator, is
//! ignored.

#![allow(unsafe_code)]

use core::alloc::Layout;
use core::any::type_name;
use core::mem::ManuallyDrop;
use core::ptr::{self, NonNull};
use std::sync::Arc;

use allocator_api2::alloc::Allocator;

use super::system;
use crate::Panic;

/// A handle to an allocator, which counts its handles. The global allocator is not counted.
#[derive(PartialEq, Eq)]
pub(super) struct Counted(NonNull<AnyAllocator>);

/// The target of a handle.
enum AnyAllocator {
    System,
    Other(Box<dyn ContainedAllocator>),
}

static SYSTEM: AnyAllocator = AnyAllocator::System;

// SAFETY: an `AnyAllocator` is `Send` and `Sync`, and it is counted with atomics.
unsafe impl Send for Counted {}
// SAFETY: an `AnyAllocator` is `Send` and `Sync`, and a shared handle gives out only shared references to it.
unsafe impl Sync for Counted {}

impl Counted {
    /// Returns the handle of the global allocator.
    pub(super) const fn system() -> Self {
        Self(NonNull::from_ref(&SYSTEM))
    }

    /// Erases the type of `allocator`.
    pub(super) fn new<A: Allocator + Send + Sync + 'static>(allocator: A) -> Self {
        let allocator = Arc::into_raw(Arc::new(AnyAllocator::Other(Box::new(allocator))));
        // SAFETY: `Arc::into_raw` never returns null. Rule 1: the handle owns the count.
        Self(unsafe { NonNull::new_unchecked(allocator.cast_mut()) })
    }

    /// Converts the handle to a word.
    #[inline]
    pub(super) fn into_raw(self) -> *const () {
        ManuallyDrop::new(self).0.as_ptr().cast_const().cast()
    }

    /// Converts a word back to the handle.
    ///
    /// # Safety
    /// The word came from `into_raw`, and this is called once for it.
    #[inline]
    pub(super) unsafe fn from_raw(word: NonNull<()>) -> Self {
        Self(word.cast())
    }

    #[inline]
    fn get(&self) -> &AnyAllocator {
        // SAFETY: rule 1: a static lives for ever, and the count keeps any other allocator alive.
        unsafe { self.0.as_ref() }
    }

    fn is_system(&self) -> bool {
        ptr::eq(self.0.as_ptr(), &raw const SYSTEM)
    }

    /// Allocates memory, or returns `None` if there is none left.
    pub(super) fn allocate(&self, layout: Layout) -> Option<NonNull<u8>> {
        match self.get() {
            AnyAllocator::System => system::allocate(layout),
            AnyAllocator::Other(allocator) => allocator.try_allocate(layout),
        }
    }

    /// Frees memory.
    ///
    /// # Safety
    /// `memory` came from `allocate` of an equal handle with this layout, and is not used any more.
    pub(super) unsafe fn deallocate(&self, memory: NonNull<u8>, layout: Layout) {
        // SAFETY: the memory came from `allocate` of an equal handle, which has chosen the same allocator.
        unsafe {
            match self.get() {
                AnyAllocator::System => system::deallocate(memory, layout),
                AnyAllocator::Other(allocator) => allocator.free(memory, layout),
            }
        }
    }

    /// Returns the name of the allocator, for `Debug`.
    pub(super) fn name(&self) -> &'static str {
        match self.get() {
            AnyAllocator::System => "system",
            AnyAllocator::Other(allocator) => allocator.name(),
        }
    }
}

impl Clone for Counted {
    fn clone(&self) -> Self {
        if !self.is_system() {
            // SAFETY: rule 1: the pointer came from `Arc::into_raw`, and our count keeps it alive.
            unsafe { Arc::increment_strong_count(self.0.as_ptr()) };
        }
        Self(self.0)
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        if !self.is_system() {
            // SAFETY: rule 1: the pointer came from `Arc::into_raw`. The destructor gives up our count, once.
            drop(Panic::catch(|| unsafe { Arc::decrement_strong_count(self.0.as_ptr()) }));
        }
    }
}

/// An allocator whose panics are caught.
trait ContainedAllocator: Send + Sync {
    fn try_allocate(&self, layout: Layout) -> Option<NonNull<u8>>;

    /// Frees memory.
    ///
    /// # Safety
    /// `memory` came from `try_allocate` with this layout, and is not used any more.
    unsafe fn free(&self, memory: NonNull<u8>, layout: Layout);

    fn name(&self) -> &'static str;
}

impl<A: Allocator + Send + Sync> ContainedAllocator for A {
    fn try_allocate(&self, layout: Layout) -> Option<NonNull<u8>> {
        Some(Panic::catch(|| self.allocate(layout)).ok()?.ok()?.cast())
    }

    unsafe fn free(&self, memory: NonNull<u8>, layout: Layout) {
        // SAFETY: `try_allocate` got the memory from `allocate` with this layout, and `Counted::deallocate`
        // says that it is not used any more.
        drop(Panic::catch(|| unsafe { self.deallocate(memory, layout) }));
    }

    fn name(&self) -> &'static str {
        type_name::<A>()
    }
}
