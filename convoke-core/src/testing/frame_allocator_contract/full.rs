//! The contract of an allocator with a bound when it is full. Other allocators pass: they cannot be filled.

use super::AllocatorHarness;
use super::frame::{Frame, Frames};

const SIZE: usize = 512;

fn fill(frames: &mut Frames) -> Vec<Frame> {
    core::iter::from_fn(|| frames.try_make(SIZE, 16)).collect()
}

pub(super) fn a_full_allocator_refuses_and_loses_nothing(harness: AllocatorHarness) {
    if !harness.bounded {
        return;
    }
    let mut frames = harness.frames();
    let made = fill(&mut frames);
    let capacity = made.len();
    assert!(
        capacity >= 16,
        "the bound must be at least 64 KiB, but {capacity} frames of {SIZE} bytes fill it"
    );
    for _ in 0..100 {
        assert!(frames.try_make(SIZE, 16).is_none(), "it was full, but made a frame though none was freed");
    }
    drop(made);
    for round in 0..3 {
        let again = fill(&mut frames).len();
        assert_eq!(again, capacity, "the capacity changed in round {round}");
    }
}

pub(super) fn holes_are_filled(harness: AllocatorHarness) {
    if !harness.bounded {
        return;
    }
    let mut frames = harness.frames();
    let mut made: Vec<Option<Frame>> = fill(&mut frames).into_iter().map(Some).collect();
    let freed = made.iter_mut().step_by(2).map(|frame| drop(frame.take())).count();
    let filled = fill(&mut frames);
    assert_eq!(filled.len(), freed, "as many frames of the same size fit as were freed");
}
