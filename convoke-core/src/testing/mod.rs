//! Test tools that need no sender: an executor whose queue the test runs, a counter of drops, and the
//! contract suite of frame allocators.

mod by_hand;
mod drop_count;
pub mod frame_allocator_contract;

pub use by_hand::ByHand;
pub use drop_count::{DropCount, DropToken};
