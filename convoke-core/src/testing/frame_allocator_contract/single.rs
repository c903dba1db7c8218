//! What an allocator does on one thread.

use super::frame::{Frame, Frames};

/// Sizes around the edges that allocators like to have.
const SIZES: [usize; 16] = [1, 8, 15, 16, 17, 64, 127, 128, 129, 511, 512, 513, 1000, 1025, 4096, 5000];

pub(super) fn frames_are_aligned(mut frames: Frames) {
    for align in (0..=8).map(|power| 1 << power) {
        // `make` looks at the address.
        let kept: Vec<Frame> = SIZES.iter().map(|size| frames.make(*size, align)).collect();
        drop(kept);
    }
}

pub(super) fn frames_of_no_size_are_fine(mut frames: Frames) {
    for align in [1, 16, 64] {
        let two = [frames.make(0, align), frames.make(0, align)];
        drop(two);
    }
}

pub(super) fn frames_do_not_overlap(mut frames: Frames) {
    let mut kept: Vec<Frame> = SIZES.iter().chain(&SIZES).map(|size| frames.make(*size, 8)).collect();
    kept.sort_by_key(|frame| frame.addresses().start);
    for pair in kept.windows(2) {
        let (one, next) = (pair[0].addresses(), pair[1].addresses());
        assert!(one.end <= next.start, "{one:x?} and {next:x?} overlap");
    }
}

/// In all far more than a bounded one has, a few at a time.
pub(super) fn frames_are_used_again(mut frames: Frames) {
    for round in 0..if cfg!(miri) { 100 } else { 10_000 } {
        let size = SIZES[round % SIZES.len()];
        let two = [frames.make(size, 8), frames.make(size, 8)];
        drop(two);
    }
}
