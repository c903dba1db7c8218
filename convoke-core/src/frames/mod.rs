//! Where the frames of tasks live. Frames come in few sizes, are short-lived and are often freed on another thread
//! than the one that made them; an allocator that knows this is faster than one that serves everything.
//!
//! | | |
//! | --- | --- |
//! | [`FrameAllocator`] | the handle that the environment carries, one word wide |
//! | [`Recycling`] | the default: keeps freed frames for the next ones |
//! | [`FrameAllocator::system`] | straight to the program's global allocator |
//! | [`Bounded`] | fixed memory; when it is full, there is no frame |
//! | [`Counting`] | counts what goes through it, for tests |
//!
//! Any other [`Allocator`] plugs in through [`FrameAllocator::new`].

mod allocator;
mod bounded;
mod counting;
mod erased;
mod recycling;
mod system;

pub use allocator::FrameAllocator;
pub use bounded::Bounded;
pub use counting::Counting;
pub use recycling::Recycling;

pub use allocator_api2::alloc::{AllocError, Allocator};
