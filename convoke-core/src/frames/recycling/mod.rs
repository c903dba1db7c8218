//! `Recycling`: freed frames are kept for the next ones, by each thread for itself, and passed on in bulk from threads
//! that free to threads that allocate.

#![allow(unsafe_code)]

mod cache;
mod classes;
mod depot;
mod magazine;

use core::alloc::Layout;
use core::ptr::NonNull;

use allocator_api2::alloc::{AllocError, Allocator};

use super::system;
use classes::Class;

/// The default allocator of frames: what was freed is kept and handed out again.
///
/// Frames are of 52 sizes: every 16 bytes up to 512, then four to each doubling, up to 16 KiB. A thread keeps up to two
/// magazines of each size it uses, of 64 frames each (fewer if they are large: of 32 KiB, or four frames); allocating
/// and freeing is then a few instructions, without an atomic. What is beyond that goes, a magazine at a time, to a
/// depot that all threads share, and from there to threads that have none: when frames are made on one thread and freed
/// on another, they come back without the system. The depot keeps up to 4 MiB of each size; what is beyond that goes back
/// to the system, as do at once frames larger than 16 KiB or aligned to more than 16 bytes. A thread that ends leaves its
/// frames to the depot.
///
/// With `CONVOKE_FRAME_CACHE=0` in the environment of the process nothing is kept: for memory checkers, which then see
/// each frame come and go.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Recycling;

impl Recycling {
    #[inline]
    pub(super) fn allocate(layout: Layout) -> Option<NonNull<u8>> {
        match Class::of(layout) {
            Some(class) => cache::take(class, layout),
            None => system::allocate(layout),
        }
    }

    /// # Safety
    /// `memory` came from `allocate` with this layout and is not used any more.
    #[inline]
    pub(super) unsafe fn deallocate(memory: NonNull<u8>, layout: Layout) {
        // SAFETY: the caller's; the layout leads to where the memory came from.
        unsafe {
            match Class::of(layout) {
                Some(class) => cache::put(class, memory, layout),
                None => system::deallocate(memory, layout),
            }
        }
    }
}

// SAFETY: memory is not handed out again before it came back, and there is only one `Recycling`, which always lives.
unsafe impl Allocator for Recycling {
    #[inline]
    fn allocate(&self, layout: Layout) -> Result<NonNull<[u8]>, AllocError> {
        let memory = Self::allocate(layout).ok_or(AllocError)?;
        Ok(NonNull::slice_from_raw_parts(memory, layout.size()))
    }

    #[inline]
    unsafe fn deallocate(&self, memory: NonNull<u8>, layout: Layout) {
        // SAFETY: the caller's; we gave out no more than was asked for, so this is the layout that was asked with.
        unsafe { Self::deallocate(memory, layout) };
    }
}
