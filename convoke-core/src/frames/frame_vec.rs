//! A `Vec` whose memory comes from a frame allocator, or from the global one if that has none left.
//!
//! 1. Memory that [`FrameMemory`] returns lies behind a header with the handle that it goes back through. The header
//!    owns that handle. The layout of the memory as a whole is [`extended`].

#![allow(unsafe_code)]

use core::alloc::Layout;
use core::fmt;
use core::ptr::NonNull;

use allocator_api2::alloc::{AllocError, Allocator};

use super::{FrameAllocator, system};

/// A vector in memory of a frame allocator.
pub type FrameVec<T> = allocator_api2::vec::Vec<T, FrameMemory>;

/// A frame allocator that is backed by the global one: for collections, which end the process if they get no memory.
#[derive(Clone)]
pub struct FrameMemory {
    allocator: FrameAllocator,
}

impl FrameMemory {
    /// Creates an empty vector in memory of this allocator.
    pub const fn vec<T>(allocator: FrameAllocator) -> FrameVec<T> {
        FrameVec::new_in(Self { allocator })
    }
}

/// Returns the layout of memory with a header before it, and the offset of the memory.
fn extended(layout: Layout) -> Result<(Layout, usize), AllocError> {
    Layout::new::<FrameAllocator>().extend(layout).map_err(|_| AllocError)
}

/// Returns the place of the header of this memory.
fn header(memory: NonNull<u8>) -> *mut FrameAllocator {
    memory.as_ptr().wrapping_sub(size_of::<FrameAllocator>()).cast()
}

// SAFETY: memory is valid until it is freed, through any clone: rule 1 says where it goes back to.
unsafe impl Allocator for FrameMemory {
    fn allocate(&self, layout: Layout) -> Result<NonNull<[u8]>, AllocError> {
        let (whole, offset) = extended(layout)?;
        let (memory, allocator) = match self.allocator.allocate(whole) {
            Some(memory) => (memory, self.allocator.clone()),
            None => (system::allocate(whole).ok_or(AllocError)?, FrameAllocator::system()),
        };
        // SAFETY: the memory is as large as `whole`, in which `offset` lies behind room for a header. The offset is a
        // multiple of the header's alignment, as the sizes and alignments of both are powers of two.
        unsafe {
            let memory = memory.add(offset);
            header(memory).write(allocator);
            Ok(NonNull::slice_from_raw_parts(memory, layout.size()))
        }
    }

    unsafe fn deallocate(&self, memory: NonNull<u8>, layout: Layout) {
        let Ok((whole, offset)) = extended(layout) else { return };
        // SAFETY: rule 1: `allocate` has written the header, which is read once, and got memory of the layout `whole`
        // from that allocator, `offset` bytes before.
        unsafe {
            let allocator = header(memory).read();
            allocator.deallocate(memory.sub(offset), whole);
        }
    }
}

impl fmt::Debug for FrameMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("FrameMemory").field(&self.allocator).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frames::{Bounded, Counting};

    #[test]
    fn a_vector_outgrows_a_full_allocator_and_gives_both_their_memory_back() {
        let bounded = Bounded::new(256);
        let mut all = FrameMemory::vec(FrameAllocator::new(bounded.clone()));
        all.push(0_u64);
        assert!(bounded.in_use() > 0);
        all.extend(1..100);
        assert!(all.iter().copied().eq(0..100));
        assert_eq!(bounded.in_use(), 0, "there was no room for a hundred, and the old memory went back");
    }

    #[test]
    fn values_of_any_alignment_have_room_for_a_header() {
        #[repr(align(64))]
        #[derive(Clone, Copy, PartialEq, Debug)]
        struct Aligned(u8);
        let counting = Counting::new(FrameAllocator::system());
        let mut aligned = FrameMemory::vec(FrameAllocator::new(counting.clone()));
        let mut small = FrameMemory::vec(FrameAllocator::new(counting.clone()));
        for n in 0..9 {
            aligned.push(Aligned(n));
            small.push(n);
        }
        assert_eq!((aligned[8], small[8], counting.live()), (Aligned(8), 8, 2));
        drop((aligned, small));
        assert_eq!((counting.live(), counting.handles()), (0, 1));
    }
}
