//! What an allocator with a bound does when it is full. Others pass: they cannot be filled.

use super::Harness;
use super::frame::{Frame, Frames};

const SIZE: usize = 512;

fn fill(frames: &mut Frames) -> Vec<Frame> {
    core::iter::from_fn(|| frames.try_make(SIZE, 16)).collect()
}

pub(super) fn when_full_there_is_none_and_nothing_is_lost(harness: Harness) {
    if !harness.bounded {
        return;
    }
    let mut frames = harness.frames();
    let kept = fill(&mut frames);
    let room = kept.len();
    assert!(room >= 16, "it has a bound of 64 KiB at least, and was full with {room} frames of {SIZE} bytes");
    for _ in 0..100 {
        assert!(frames.try_make(SIZE, 16).is_none(), "it was full, and had room without a frame being freed");
    }
    drop(kept);
    for round in 0..3 {
        let again = fill(&mut frames).len();
        assert_eq!(again, room, "room was lost, or found, in round {round}");
    }
}

pub(super) fn holes_are_filled(harness: Harness) {
    if !harness.bounded {
        return;
    }
    let mut frames = harness.frames();
    let mut kept: Vec<Option<Frame>> = fill(&mut frames).into_iter().map(Some).collect();
    let freed = kept.iter_mut().step_by(2).map(|frame| drop(frame.take())).count();
    let filled = fill(&mut frames);
    assert_eq!(filled.len(), freed, "as many frames of the same size as were freed");
}
