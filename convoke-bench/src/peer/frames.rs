//! Where the frame of a child future may live, and the box it lives in: what `Box::pin` does, with an allocator to choose,
//! which stable Rust's box does not let one do.

#![allow(unsafe_code)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::future::Future;
use std::pin::Pin;
use std::ptr::NonNull;

use mimalloc::MiMalloc;

/// Gives and takes back memory for frames.
///
/// # Safety
/// What `allocate` returns is fit for the layout and nobody else's until it was given to `free`.
pub(crate) unsafe trait FrameAllocator: Clone {
    fn allocate(&self, layout: Layout) -> Option<NonNull<u8>>;

    /// # Safety
    /// The block came from `allocate` of this allocator or a clone, with this layout, and is not used again.
    unsafe fn free(&self, block: NonNull<u8>, layout: Layout);
}

/// The system's `malloc`, past the global allocator.
#[derive(Clone, Copy)]
pub(crate) struct SystemFrames;

// SAFETY: `System` keeps the contract of `GlobalAlloc`, which says as much.
unsafe impl FrameAllocator for SystemFrames {
    #[inline]
    fn allocate(&self, layout: Layout) -> Option<NonNull<u8>> {
        // SAFETY: a frame is not of size zero, see `Frame::new`.
        NonNull::new(unsafe { System.alloc(layout) })
    }

    #[inline]
    unsafe fn free(&self, block: NonNull<u8>, layout: Layout) {
        // SAFETY: the caller's contract.
        unsafe { System.dealloc(block.as_ptr(), layout) }
    }
}

/// Convoke's own, past the global allocator.
#[derive(Clone, Copy)]
pub(crate) struct RecyclingFrames;

// SAFETY: a frame allocator keeps the contract of `Allocator`, which says as much.
unsafe impl FrameAllocator for RecyclingFrames {
    #[inline]
    fn allocate(&self, layout: Layout) -> Option<NonNull<u8>> {
        convoke::alloc::FrameAllocator::recycling().allocate(layout)
    }

    #[inline]
    unsafe fn free(&self, block: NonNull<u8>, layout: Layout) {
        // SAFETY: the caller's contract.
        unsafe { convoke::alloc::FrameAllocator::recycling().deallocate(block, layout) }
    }
}

/// mimalloc, past the global allocator.
#[derive(Clone, Copy)]
pub(crate) struct Mimalloc;

// SAFETY: `MiMalloc` keeps the contract of `GlobalAlloc`, which says as much.
unsafe impl FrameAllocator for Mimalloc {
    #[inline]
    fn allocate(&self, layout: Layout) -> Option<NonNull<u8>> {
        // SAFETY: a frame is not of size zero, see `Frame::new`.
        NonNull::new(unsafe { MiMalloc.alloc(layout) })
    }

    #[inline]
    unsafe fn free(&self, block: NonNull<u8>, layout: Layout) {
        // SAFETY: the caller's contract.
        unsafe { MiMalloc.dealloc(block.as_ptr(), layout) }
    }
}

/// A block of memory used as a stack, for as long as the process lasts: what frames that end in the reverse order of their
/// beginning could have. The room of a frame that ends out of turn is lost.
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

// SAFETY: `top` only falls to the start of a block that was freed, so what lies below it is in use by one block each.
unsafe impl FrameAllocator for BumpStack {
    #[inline]
    fn allocate(&self, layout: Layout) -> Option<NonNull<u8>> {
        let (start, size) = (self.0.top.get(), layout.size().next_multiple_of(GRAIN));
        if layout.align() > GRAIN || size > STACK_SIZE - start {
            return None;
        }
        self.0.top.set(start + size);
        // SAFETY: within the block, by the line above.
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

/// A pinned future in memory of `A`'s.
pub(crate) struct Frame<F, A: FrameAllocator> {
    future: NonNull<F>,
    allocator: A,
}

// SAFETY: a frame is its future and its allocator, as a box is.
unsafe impl<F: Send, A: FrameAllocator + Send> Send for Frame<F, A> {}

impl<F: Future, A: FrameAllocator> Frame<F, A> {
    /// `make` is called when there is room, so that the future is made where it is to live.
    #[inline]
    pub(crate) fn new(allocator: &A, make: impl FnOnce() -> F) -> Self {
        const { assert!(size_of::<F>() > 0) };
        let future = allocator.allocate(Layout::new::<F>()).expect("there is memory for a frame").cast();
        // SAFETY: fit for an `F` and ours.
        unsafe { future.write(make()) };
        Self { future, allocator: allocator.clone() }
    }

    #[inline]
    pub(crate) fn as_mut(&mut self) -> Pin<&mut F> {
        // SAFETY: written in `new`, borrowed as we are, and it stays where it is until it is dropped.
        unsafe { Pin::new_unchecked(self.future.as_mut()) }
    }
}

impl<F, A: FrameAllocator> Drop for Frame<F, A> {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: written in `new` into memory of this allocator's; it is gone after this.
        unsafe {
            self.future.drop_in_place();
            self.allocator.free(self.future.cast(), Layout::new::<F>());
        }
    }
}
