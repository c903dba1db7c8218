//! Allocators for the frame of a child future, and the box it lives in: `Box::pin` with a choice of
//! allocator, which stable Rust does not offer.

#![allow(unsafe_code)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::future::Future;
use std::pin::Pin;
use std::ptr::NonNull;

use mimalloc::MiMalloc;

/// An allocator for frames.
///
/// # Safety
/// `allocate` returns memory that fits the layout and is exclusive until it is passed to `free`.
pub(crate) unsafe trait FrameAllocator: Clone {
    fn allocate(&self, layout: Layout) -> Option<NonNull<u8>>;

    /// # Safety
    /// The block came from `allocate` of this allocator or a clone, with this layout, and is not used again.
    unsafe fn free(&self, block: NonNull<u8>, layout: Layout);
}

/// The system's `malloc`, without the global allocator.
#[derive(Clone, Copy)]
pub(crate) struct SystemFrames;

// SAFETY: `System` upholds the contract of `GlobalAlloc`, which includes this one.
unsafe impl FrameAllocator for SystemFrames {
    #[inline]
    fn allocate(&self, layout: Layout) -> Option<NonNull<u8>> {
        // SAFETY: the layout is not of size zero, which `Frame::new` asserts.
        NonNull::new(unsafe { System.alloc(layout) })
    }

    #[inline]
    unsafe fn free(&self, block: NonNull<u8>, layout: Layout) {
        // SAFETY: the caller promises that the block came from `allocate` above with this layout.
        unsafe { System.dealloc(block.as_ptr(), layout) }
    }
}

/// Convoke's recycling allocator, without the global allocator.
#[derive(Clone, Copy)]
pub(crate) struct RecyclingFrames;

// SAFETY: a Convoke frame allocator upholds the contract of `Allocator`, which includes this one.
unsafe impl FrameAllocator for RecyclingFrames {
    #[inline]
    fn allocate(&self, layout: Layout) -> Option<NonNull<u8>> {
        convoke::alloc::FrameAllocator::recycling().allocate(layout)
    }

    #[inline]
    unsafe fn free(&self, block: NonNull<u8>, layout: Layout) {
        // SAFETY: the caller promises that the block came from `allocate` above with this layout.
        unsafe { convoke::alloc::FrameAllocator::recycling().deallocate(block, layout) }
    }
}

/// mimalloc, without the global allocator.
#[derive(Clone, Copy)]
pub(crate) struct Mimalloc;

// SAFETY: `MiMalloc` upholds the contract of `GlobalAlloc`, which includes this one.
unsafe impl FrameAllocator for Mimalloc {
    #[inline]
    fn allocate(&self, layout: Layout) -> Option<NonNull<u8>> {
        // SAFETY: the layout is not of size zero, which `Frame::new` asserts.
        NonNull::new(unsafe { MiMalloc.alloc(layout) })
    }

    #[inline]
    unsafe fn free(&self, block: NonNull<u8>, layout: Layout) {
        // SAFETY: the caller promises that the block came from `allocate` above with this layout.
        unsafe { MiMalloc.dealloc(block.as_ptr(), layout) }
    }
}

/// A block of memory used as a stack, which lives as long as the process: for frames that end in the reverse
/// order of their start. The memory of a frame that ends out of order is lost.
#[derive(Clone, Copy)]
pub(crate) struct BumpStack(&'static Stack);

struct Stack {
    top: Cell<usize>,
    base: NonNull<u8>,
}

/// Alignment and granularity of the stack.
const GRAIN: usize = 16;
const STACK_SIZE: usize = 64 << 10;

impl BumpStack {
    pub(crate) fn leak() -> Self {
        let grains = vec![0_u128; STACK_SIZE / GRAIN].leak();
        let base = NonNull::from(grains).cast();
        Self(Box::leak(Box::new(Stack { top: Cell::new(0), base })))
    }
}

// SAFETY: `top` only falls to the start of a block that was freed, so each block below it is exclusive.
unsafe impl FrameAllocator for BumpStack {
    #[inline]
    fn allocate(&self, layout: Layout) -> Option<NonNull<u8>> {
        let (start, size) = (self.0.top.get(), layout.size().next_multiple_of(GRAIN));
        if layout.align() > GRAIN || size > STACK_SIZE - start {
            return None;
        }
        self.0.top.set(start + size);
        // SAFETY: `start` is within the block, by the check above.
        Some(unsafe { self.0.base.add(start) })
    }

    #[inline]
    unsafe fn free(&self, block: NonNull<u8>, layout: Layout) {
        let start = block.addr().get() - self.0.base.addr().get();
        if start + layout.size().next_multiple_of(GRAIN) == self.0.top.get() {
            self.0.top.set(start);
        }
    }
}

/// A pinned future in memory of allocator `A`.
pub(crate) struct Frame<F, A: FrameAllocator> {
    future: NonNull<F>,
    allocator: A,
}

// SAFETY: a frame owns its future and its allocator, as a box does, and both are `Send`.
unsafe impl<F: Send, A: FrameAllocator + Send> Send for Frame<F, A> {}

impl<F: Future, A: FrameAllocator> Frame<F, A> {
    /// Allocates a frame and then calls `make`, so that the future is created in place.
    #[inline]
    pub(crate) fn new(allocator: &A, make: impl FnOnce() -> F) -> Self {
        const { assert!(size_of::<F>() > 0) };
        let future = allocator.allocate(Layout::new::<F>()).expect("there is memory for a frame").cast();
        // SAFETY: the memory fits an `F` and is exclusive.
        unsafe { future.write(make()) };
        Self { future, allocator: allocator.clone() }
    }

    #[inline]
    pub(crate) fn as_mut(&mut self) -> Pin<&mut F> {
        // SAFETY: the future was written in `new`, is borrowed as `self` is, and does not move until it is
        // dropped.
        unsafe { Pin::new_unchecked(self.future.as_mut()) }
    }
}

impl<F, A: FrameAllocator> Drop for Frame<F, A> {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: the future was written in `new` into memory of this allocator, and is not used after this
        // drop.
        unsafe {
            self.future.drop_in_place();
            self.allocator.free(self.future.cast(), Layout::new::<F>());
        }
    }
}
