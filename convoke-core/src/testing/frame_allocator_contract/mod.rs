//! The contract of a frame allocator, as a suite that any allocator can be put through.
//!
//! ```
//! use convoke::alloc::{Bounded, FrameAllocator};
//! use convoke::testing::frame_allocator_contract::{Harness, check};
//!
//! check(|| Harness::new(FrameAllocator::default()));
//! check(|| Harness::new(FrameAllocator::new(Bounded::new(1 << 16))).bounded());
//! ```

mod frame;
mod full;
mod many;
mod single;

use core::fmt;

use crate::frames::FrameAllocator;
use frame::Frames;

/// An allocator under test, and what it promises beyond the contract.
///
/// Harnesses are made again and again, each with an allocator of its own, or all with the same one.
pub struct Harness {
    allocator: FrameAllocator,
    bounded: bool,
}

impl Harness {
    /// An allocator whose memory is that of the machine.
    pub fn new(allocator: FrameAllocator) -> Self {
        Self { allocator, bounded: false }
    }

    /// It has a bound of at least 64 KiB, which is its own: it can be full, and what is freed is room again.
    pub fn bounded(mut self) -> Self {
        self.bounded = true;
        self
    }

    fn frames(self) -> Frames {
        Frames::new(self.allocator, self.bounded)
    }
}

impl fmt::Debug for Harness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Harness").field("allocator", &self.allocator).field("bounded", &self.bounded).finish()
    }
}

/// Puts the allocator through all of it.
///
/// # Panics
/// If it breaks the contract.
pub fn check(make: impl Fn() -> Harness) {
    single::frames_are_aligned(make().frames());
    single::frames_of_no_size_are_fine(make().frames());
    single::frames_do_not_overlap(make().frames());
    single::frames_are_used_again(make().frames());
    many::a_clone_frees_what_the_original_made(make().frames());
    many::a_frame_is_freed_on_another_thread(make().frames());
    many::frames_outlive_the_thread_that_made_them(make().frames());
    many::a_thread_that_ends_can_still_free(make().frames());
    full::when_full_there_is_none_and_nothing_is_lost(make());
    full::holes_are_filled(make());
    for seed in 1..=4 {
        check_random(&make, seed);
    }
}

/// The part of [`check`] that is random, from one seed, to run again one that failed.
///
/// # Panics
/// If the allocator breaks the contract.
pub fn check_random(make: impl Fn() -> Harness, seed: u64) {
    let _named = NamesSeed(seed);
    many::sizes_and_threads_in_disorder(make().frames(), seed);
}

/// Says which seed it was, if the test fails.
struct NamesSeed(u64);

impl Drop for NamesSeed {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("to see this again: frame_allocator_contract::check_random(make, {})", self.0);
        }
    }
}
