//! The contract on one thread.

use super::frame::{Frame, Frames};

/// Sizes around the borders of size classes.
const SIZES: [usize; 16] = [1, 8, 15, 16, 17, 64, 127, 128, 129, 511, 512, 513, 1000, 1025, 4096, 5000];

pub(super) fn frames_are_aligned(mut frames: Frames) {
    for align in (0..=8).map(|power| 1 << power) {
        // `make` checks the alignment.
        let made: Vec<Frame> = SIZES.iter().map(|size| frames.make(*size, align)).collect();
        drop(made);
    }
}

pub(super) fn frames_of_no_size_are_fine(mut frames: Frames) {
    for align in [1, 16, 64] {
        let two = [frames.make(0, align), frames.make(0, align)];
        drop(two);
    }
}

pub(super) fn frames_do_not_overlap(mut frames: Frames) {
    let mut made: Vec<Frame> = SIZES.iter().chain(&SIZES).map(|size| frames.make(*size, 8)).collect();
    made.sort_by_key(|frame| frame.addresses().start);
    for pair in made.windows(2) {
        let (one, next) = (pair[0].addresses(), pair[1].addresses());
        assert!(one.end <= next.start, "{one:x?} and {next:x?} overlap");
    }
}

/// Allocates far more than a bounded allocator has, a few frames at a time.
pub(super) fn frames_are_reused(mut frames: Frames) {
    for round in 0..if cfg!(miri) { 20 } else { 10_000 } {
        let size = SIZES[round % SIZES.len()];
        let two = [frames.make(size, 8), frames.make(size, 8)];
        drop(two);
    }
}
