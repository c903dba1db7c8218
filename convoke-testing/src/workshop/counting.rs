//! An allocator that counts, for tests that say what is allocated. The test program makes it its own:
//! `#[global_allocator] static ALLOCATOR: CountingAllocator = CountingAllocator;`.

#![allow(unsafe_code)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::atomic::{AtomicIsize, Ordering};

/// Counts the allocations of each thread, and the bytes of all.
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
        // SAFETY: the contract of `alloc` is the system's, and the caller keeps it.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        FREED.with(|count| count.set(count.get() + 1));
        LIVE_BYTES.fetch_sub(layout.size().cast_signed(), Ordering::Relaxed);
        // SAFETY: the memory was allocated by the system's allocator with this layout.
        unsafe { System.dealloc(memory, layout) }
    }
}

/// Returns how often this thread has allocated.
pub fn allocated() -> usize {
    ALLOCATED.with(Cell::get)
}

/// Returns how often this thread has freed memory.
pub fn freed() -> usize {
    FREED.with(Cell::get)
}

/// Returns how many bytes are allocated and not freed, by all threads.
pub fn live_bytes() -> isize {
    LIVE_BYTES.load(Ordering::Relaxed)
}

/// Returns how many allocations this thread makes in `f`.
pub fn allocations(f: impl FnOnce()) -> usize {
    let before = allocated();
    f();
    allocated() - before
}
