//! The contract of frame allocators, as a test suite for any allocator.
//!
//! ```
//! use convoke::alloc::{Bounded, FrameAllocator};
//! use convoke::testing::frame_allocator_contract::{AllocatorHarness, check};
//!
//! check(|| AllocatorHarness::new(FrameAllocator::default()));
//! let bounded = || FrameAllocator::new(Bounded::new(1 << 16));
//! check(|| AllocatorHarness::new(bounded()).bounded());
//! ```

mod frame;
mod full;
mod many;
mod single;

use core::fmt;

use crate::frames::FrameAllocator;
use frame::Frames;

/// An allocator under test, and what it guarantees beyond the contract.
///
/// The suite creates many harnesses, each with an allocator of its own, or all with the same one.
pub struct AllocatorHarness {
    allocator: FrameAllocator,
    bounded: bool,
}

impl AllocatorHarness {
    /// Creates a harness for an allocator without a bound of its own.
    pub fn new(allocator: FrameAllocator) -> Self {
        Self { allocator, bounded: false }
    }

    /// Says that the allocator has a bound of at least 64 KiB of its own: it can be full, and reuses what is
    /// freed.
    pub fn bounded(mut self) -> Self {
        self.bounded = true;
        self
    }

    fn frames(self) -> Frames {
        Frames::new(self.allocator, self.bounded)
    }
}

impl fmt::Debug for AllocatorHarness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AllocatorHarness")
            .field("allocator", &self.allocator)
            .field("bounded", &self.bounded)
            .finish()
    }
}

/// Runs the whole suite against the allocator.
///
/// # Panics
/// If the allocator breaks the contract.
pub fn check(make: impl Fn() -> AllocatorHarness) {
    single::frames_are_aligned(make().frames());
    single::frames_of_no_size_are_fine(make().frames());
    single::frames_do_not_overlap(make().frames());
    single::frames_are_reused(make().frames());
    many::a_clone_frees_what_the_original_made(make().frames());
    many::a_frame_is_freed_on_another_thread(make().frames());
    many::frames_outlive_the_thread_that_made_them(make().frames());
    many::a_thread_that_ends_can_still_free(make().frames());
    full::a_full_allocator_refuses_and_loses_nothing(make());
    full::holes_are_filled(make());
    for seed in 1..=4 {
        check_random(&make, seed);
    }
}

/// Runs the random part of [`check`] from one seed, to repeat a failed run.
///
/// # Panics
/// If the allocator breaks the contract.
pub fn check_random(make: impl Fn() -> AllocatorHarness, seed: u64) {
    let _named = NamesSeed(seed);
    many::sizes_and_threads_in_disorder(make().frames(), seed);
}

/// Prints the seed if the test fails.
struct NamesSeed(u64);

impl Drop for NamesSeed {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("to repeat this run: frame_allocator_contract::check_random(make, {})", self.0);
        }
    }
}
