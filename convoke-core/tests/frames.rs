//! The frame allocators, through their contract.

#![cfg(not(feature = "loom"))]

use convoke_core::frames::{Bounded, Counting, FrameAllocator};
use convoke_core::testing::frame_allocator_contract::{Harness, check};

#[test]
fn recycling_keeps_the_contract() {
    check(|| Harness::new(FrameAllocator::recycling()));
}

#[test]
fn the_system_keeps_the_contract() {
    check(|| Harness::new(FrameAllocator::system()));
}

#[test]
fn bounded_keeps_the_contract() {
    check(|| Harness::new(FrameAllocator::new(Bounded::new(64 * 1024))).bounded());
}

#[test]
fn counting_keeps_the_contract_and_nothing_is_left_of_it() {
    let counting = Counting::new(FrameAllocator::default());
    check(|| Harness::new(FrameAllocator::new(counting.clone())));
    assert_eq!((counting.live(), counting.live_bytes()), (0, 0));
    assert!(counting.total() > counting.peak() && counting.peak() > 0);
}

#[test]
fn a_bounded_one_gets_everything_back() {
    let memory = Bounded::new(64 * 1024);
    check(|| Harness::new(FrameAllocator::new(memory.clone())).bounded());
    assert_eq!(memory.in_use(), 0);
}
