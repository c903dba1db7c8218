//! `Recycling`: each thread caches freed frames for the next ones, and passes what it has too much of to
//! other threads, in bulk.
//!
//! `classes.rs` are the size classes. `magazine.rs` is a stack of frames of one class. `cache.rs` has the
//! magazines of a thread, and is used without locks or atomics. `depot.rs` has the magazines of no thread,
//! behind a lock for each class.

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

/// The default allocator of frames, which caches freed frames and hands them out again.
///
/// Frames have 52 size classes: every 16 bytes up to 512, then four to each doubling, up to 16 KiB. A thread
/// caches up to two magazines of each class it uses, of 64 frames each (fewer if they are large: 32 KiB, or
/// four frames). Allocating and freeing then takes a few instructions and no atomics. What exceeds that goes,
/// a magazine at a time, to a depot that all threads share, and from there to threads that have none: frames
/// that are made on one thread and freed on another are reused without the system. The depot caches up to 4
/// MiB of each class and returns the rest to the system. Frames larger than 16 KiB, or aligned to more than
/// 16 bytes, always go to the system. A thread that ends leaves its frames to the depot.
///
/// `CONVOKE_FRAME_CACHE=0` in the environment of the process turns the cache off: memory checkers then see
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

    /// Frees memory.
    ///
    /// # Safety
    /// `memory` came from `allocate` with this layout and is not used any more.
    #[inline]
    pub(super) unsafe fn deallocate(memory: NonNull<u8>, layout: Layout) {
        // SAFETY: the memory came from `allocate`, where the layout decided by the same condition what it came
        // from; and it is not used any more.
        unsafe {
            match Class::of(layout) {
                Some(class) => cache::put(class, memory, layout),
                None => system::deallocate(memory, layout),
            }
        }
    }
}

// SAFETY: memory is not handed out again before it was freed. There is only one `Recycling`, whose memory
// lives for ever.
unsafe impl Allocator for Recycling {
    #[inline]
    fn allocate(&self, layout: Layout) -> Result<NonNull<[u8]>, AllocError> {
        let memory = Self::allocate(layout).ok_or(AllocError)?;
        Ok(NonNull::slice_from_raw_parts(memory, layout.size()))
    }

    #[inline]
    unsafe fn deallocate(&self, memory: NonNull<u8>, layout: Layout) {
        // SAFETY: the memory came from `allocate` above. That returns no more than was asked for, so this is
        // the layout that was asked for.
        unsafe { Self::deallocate(memory, layout) };
    }
}
