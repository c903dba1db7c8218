//! The frame allocators, put through the contract suite; and broken ones, which the suite must find.

#![allow(unsafe_code)]

use std::alloc::Layout;
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicPtr, Ordering};

use convoke_core::frames::{AllocError, Allocator, Bounded, Counting, FrameAllocator};
use convoke_core::testing::frame_allocator_contract::{AllocatorHarness, check};

#[test]
fn recycling_keeps_the_contract() {
    check(|| AllocatorHarness::new(FrameAllocator::recycling()));
}

#[test]
fn the_system_keeps_the_contract() {
    check(|| AllocatorHarness::new(FrameAllocator::system()));
}

#[test]
fn bounded_keeps_the_contract() {
    check(|| AllocatorHarness::new(FrameAllocator::new(Bounded::new(64 * 1024))).bounded());
}

#[test]
fn counting_keeps_the_contract_and_nothing_is_left_of_it() {
    let counting = Counting::new(FrameAllocator::default());
    check(|| AllocatorHarness::new(FrameAllocator::new(counting.clone())));
    assert_eq!((counting.live(), counting.live_bytes()), (0, 0));
    assert!(counting.total() > counting.peak() && counting.peak() > 0);
}

#[test]
fn a_bounded_allocator_gets_everything_back() {
    let memory = Bounded::new(64 * 1024);
    check(|| AllocatorHarness::new(FrameAllocator::new(memory.clone())).bounded());
    assert_eq!(memory.in_use(), 0);
}

/// An allocator that breaks the contract by where it allocates.
struct Broken<F> {
    memory: Bounded,
    locate: F,
}

impl<F: Fn(&Bounded, Layout) -> Option<NonNull<u8>> + Send + Sync + 'static> Broken<F> {
    fn harness(locate: F) -> AllocatorHarness {
        let memory = Bounded::new(64 * 1024);
        AllocatorHarness::new(FrameAllocator::new(Self { memory, locate })).bounded()
    }
}

fn of(memory: &Bounded, layout: Layout) -> Option<NonNull<u8>> {
    memory.allocate(layout).ok().map(NonNull::cast)
}

// SAFETY: it breaks the contract on purpose. All it hands out is in memory that lives as long as it does, and
// that only the suite uses.
unsafe impl<F: Fn(&Bounded, Layout) -> Option<NonNull<u8>>> Allocator for Broken<F> {
    fn allocate(&self, layout: Layout) -> Result<NonNull<[u8]>, AllocError> {
        let memory = (self.locate)(&self.memory, layout).ok_or(AllocError)?;
        Ok(NonNull::slice_from_raw_parts(memory, layout.size()))
    }

    unsafe fn deallocate(&self, _: NonNull<u8>, _: Layout) {}
}

#[test]
#[should_panic(expected = "is not aligned")]
fn an_allocator_that_ignores_the_alignment_is_found_out() {
    check(|| {
        Broken::harness(|memory, layout| {
            let larger = Layout::from_size_align(layout.size() + 1, layout.align()).unwrap();
            // SAFETY: there is one byte more than was asked for.
            of(memory, larger).map(|frame| unsafe { frame.add(usize::from(layout.align() > 1)) })
        })
    });
}

#[test]
#[should_panic(expected = "another frame overlaps this one")]
fn an_allocator_that_hands_out_the_same_memory_twice_is_found_out() {
    check(|| {
        let only = AtomicPtr::new(ptr::null_mut());
        Broken::harness(move |memory, _| {
            NonNull::new(only.load(Ordering::Relaxed)).or_else(|| {
                let frame = of(memory, Layout::from_size_align(8192, 4096).unwrap())?;
                only.store(frame.as_ptr(), Ordering::Relaxed);
                Some(frame)
            })
        })
    });
}

#[test]
#[should_panic(expected = "the allocator must have memory for this frame")]
fn a_bounded_allocator_that_leaks_is_found_out() {
    check(|| Broken::harness(of));
}
