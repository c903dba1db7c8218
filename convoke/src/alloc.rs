//! Frame allocators: where the memory of tasks comes from, chosen per chain. [`frame()`] puts a single future there.
//! [`FrameAllocator`] says what happens when there is no memory left.

#[doc(inline)]
pub use convoke_core::frames::{AllocError, Allocator, Bounded, Counting, FrameAllocator, Recycling};
#[doc(inline)]
pub use convoke_task::{Framed, frame, frame_dyn, frame_dyn_local, try_frame};
