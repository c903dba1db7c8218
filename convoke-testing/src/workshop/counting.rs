//! An allocator that counts, for tests of allocations. The test program installs it: `#[global_allocator]
//! static ALLOCATOR: CountingAllocator = CountingAllocator;`.

#![allow(unsafe_code)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::atomic::{AtomicIsize, Ordering};

/// An allocator that counts the allocations of each thread, and the live bytes of all threads.
#[derive(Debug)]
pub struct CountingAllocator;

static LIVE_BYTES: AtomicIsize = AtomicIsize::new(0);

thread_local! {
    static ALLOCATED: Cell<usize> = const { Cell::new(0) };
    static FREED: Cell<usize> = const { Cell::new(0) };
}

// SAFETY: every call is passed on to the system's allocator.
unsafe impl GlobalAlloc for CountingAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATED.with(|count| count.set(count.get() + 1));
        LIVE_BYTES.fetch_add(layout.size().cast_signed(), Ordering::Relaxed);
        // SAFETY: the contract of `alloc`, which the caller upholds, is that of `System`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        FREED.with(|count| count.set(count.get() + 1));
        LIVE_BYTES.fetch_sub(layout.size().cast_signed(), Ordering::Relaxed);
        // SAFETY: `alloc` above got the memory from `System` with this layout, which the caller passes back.
        unsafe { System.dealloc(memory, layout) }
    }
}

/// Returns the number of allocations of this thread.
pub fn allocated() -> usize {
    ALLOCATED.with(Cell::get)
}

/// Returns the number of deallocations of this thread.
pub fn freed() -> usize {
    FREED.with(Cell::get)
}

/// Returns the number of bytes that are allocated and not freed, by all threads.
pub fn live_bytes() -> isize {
    LIVE_BYTES.load(Ordering::Relaxed)
}

/// Returns the number of allocations that this thread makes in `f`.
pub fn allocations(f: impl FnOnce()) -> usize {
    let before = allocated();
    f();
    allocated() - before
}
