//! Pools that come and go do not add up in memory.
#![cfg(all(feature = "testing", not(feature = "loom")))]

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicIsize, Ordering};

use convoke::pool::{PoolExecutor, Priority};
use convoke::prelude::*;

/// Counts the bytes that are allocated, of all threads.
struct Counting;

static BYTES: AtomicIsize = AtomicIsize::new(0);

// SAFETY: everything is passed on to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        BYTES.fetch_add(layout.size().cast_signed(), Ordering::Relaxed);
        // SAFETY: what is asked of us is what we ask.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        BYTES.fetch_sub(layout.size().cast_signed(), Ordering::Relaxed);
        // SAFETY: `alloc` took it from there with this layout.
        unsafe { System.dealloc(memory, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Makes pools, one after the other, and has each run something.
fn make_pools(pools: isize) -> PoolExecutor {
    let mut last = None;
    for number in 0..pools {
        let pool = ThreadPool::new(2).unwrap();
        let executor = pool.executor();
        assert_eq!(sync_wait(schedule(&executor).then(|()| number)), Outcome::Value(number));
        last = Some(executor);
    }
    last.unwrap()
}

#[test]
fn a_pool_that_has_ended_keeps_next_to_no_memory() {
    const POOLS: isize = if cfg!(miri) { 3 } else { 300 };
    // What is made once, and what the threads of earlier pools have left to be collected.
    make_pools(POOLS);
    let before = BYTES.load(Ordering::Relaxed);
    let last = make_pools(POOLS);
    let kept = (BYTES.load(Ordering::Relaxed) - before) / POOLS;
    assert!(cfg!(miri) || kept < 200, "each pool keeps {kept} bytes");
    // A handle outlives its pool, and refuses.
    assert_eq!(sync_wait(schedule(&last)), Outcome::Stopped);
    assert_eq!(sync_wait(schedule(&last.with_priority(Priority::High))), Outcome::Stopped);
    assert_eq!((last.priority(), last.parallelism()), (Priority::Normal, 2));
}
