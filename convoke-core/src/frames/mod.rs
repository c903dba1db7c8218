//! Allocators for the frames of tasks. A frame is the memory of a task. Frames have few sizes, live short,
//! and are often freed on another thread than the one that made them. An allocator that knows this is faster
//! than a general one.
//!
//! An environment carries a [`FrameAllocator`], and all work below inherits it. A frame stores the handle
//! that it was allocated with and goes back through it, on any thread.
//!
//! | type | what it does |
//! | --- | --- |
//! | [`FrameAllocator`] | the handle that the environment carries, one word wide |
//! | [`Recycling`] | the default: caches freed frames for the next ones |
//! | [`FrameAllocator::system`] | uses the program's global allocator |
//! | [`Bounded`] | uses a fixed amount of memory; if it is full, there is no frame |
//! | [`Counting`] | counts the frames of another allocator, for tests |
//!
//! Any other [`Allocator`] is plugged in with [`FrameAllocator::new`].
//!
//! All other memory of a task lies in frames, too: `FrameArc`, `FrameBox` and `FrameVec` (in `raw`) are the
//! `Arc`, `Box` and `Vec` of this crate and of those above. They fall back on the global allocator when there is no
//! frame left, because a stop, a wake-up or a clean-up must not fail for lack of memory.

mod allocator;
mod bounded;
mod counting;
mod erased;
pub(crate) mod frame_arc;
pub(crate) mod frame_box;
pub(crate) mod frame_vec;
pub(crate) mod frame_waker;
mod recycling;
mod system;
mod unsize;

pub use allocator::FrameAllocator;
pub use bounded::Bounded;
pub use counting::Counting;
pub use recycling::Recycling;

pub use allocator_api2::alloc::{AllocError, Allocator};
