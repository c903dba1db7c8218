//! `Bounded`: a fixed amount of memory for the frames of a tenant, a connection or a test.

#![allow(unsafe_code)]

use core::alloc::Layout;
use core::fmt;
use core::ptr::NonNull;
use std::sync::{Arc, PoisonError};

use allocator_api2::alloc::{AllocError, Allocator};

use super::system;
use crate::sync::{Mutex, MutexGuard};

/// The unit of addresses and sizes of frames. A hole is at least one unit, which is large enough for a
/// [`Hole`].
const UNIT: usize = 16;
/// The memory as a whole is aligned to a cache line.
const REGION_ALIGN: usize = 64;

/// An allocator with a fixed number of bytes, which it takes from the system once. If no hole is large enough
/// for a frame, spawning fails with an error, and nothing is lost: see [`FrameAllocator`](super::FrameAllocator) for what
/// then comes from the global allocator instead. Freed memory is used again, and adjacent holes are merged.
///
/// A frame takes its size rounded up to 16 bytes, without overhead. Allocation is first-fit. The cost of
/// freeing a frame is linear in the number of holes before it.
///
/// Clones are handles to the same memory.
///
/// ```
/// use convoke::alloc::{Bounded, FrameAllocator};
/// use std::alloc::Layout;
///
/// let memory = Bounded::new(4096);
/// let frames = FrameAllocator::new(memory.clone());
/// let layout = Layout::new::<[u64; 300]>();
/// let frame = frames.allocate(layout).unwrap();
/// assert!(frames.allocate(layout).is_none());
/// assert_eq!((memory.in_use(), memory.capacity()), (2400, 4096));
/// // SAFETY: it came from there, with this layout.
/// unsafe { frames.deallocate(frame, layout) };
/// assert_eq!(memory.in_use(), 0);
/// ```
#[derive(Clone)]
pub struct Bounded {
    region: Arc<Region>,
}

struct Region {
    base: NonNull<u8>,
    layout: Layout,
    holes: Mutex<Holes>,
}

/// The free memory. Rules:
/// 1. The holes are linked in the order of their addresses, and no two of them touch.
/// 2. Each hole begins and ends at a multiple of `UNIT`, and its first bytes are an initialised [`Hole`].
/// 3. All memory of the region that is in no hole belongs to a frame.
/// 4. A [`HoleRef`] is made of memory in a hole, or of a frame that is given back; and it is written before
///    it is linked.
struct Holes {
    first: Option<HoleRef>,
    free: usize,
}

/// Written at the beginning of each hole.
#[derive(Clone, Copy)]
struct Hole {
    size: usize,
    next: Option<HoleRef>,
}

/// The address of a hole.
#[derive(Clone, Copy, PartialEq, PartialOrd)]
struct HoleRef(NonNull<Hole>);

impl HoleRef {
    fn read(self) -> Hole {
        // SAFETY: rules 2 and 4: it is a hole, and was written. `Holes` is borrowed by the caller, so that
        // nothing else writes to it now.
        unsafe { self.0.read() }
    }

    fn write(self, hole: Hole) {
        // SAFETY: rules 2 and 4: the memory is free, and large enough and aligned for a `Hole`.
        unsafe { self.0.write(hole) }
    }

    /// Returns the address this many bytes behind its beginning.
    fn behind(self, bytes: usize) -> NonNull<u8> {
        let address = self.0.cast::<u8>();
        address.map_addr(|address| address.checked_add(bytes).expect("a region ends below the last address"))
    }
}

const _: () = assert!(size_of::<Hole>() <= UNIT && align_of::<Hole>() <= UNIT);

// SAFETY: the region owns its memory, and the holes in it are accessed only with the mutex held.
unsafe impl Send for Region {}
// SAFETY: the holes are accessed only with the mutex held; the other fields do not change.
unsafe impl Sync for Region {}

impl Bounded {
    /// Takes `bytes`, rounded up to a multiple of 16, from the system. Aborts the process if there is not
    /// that much, as `Box` does.
    pub fn new(bytes: usize) -> Self {
        let layout = Layout::from_size_align(bytes, REGION_ALIGN)
            .and_then(|layout| Layout::from_size_align(bytes.next_multiple_of(UNIT), layout.align()))
            .expect("the size must be less than the address space");
        let Some(base) = system::allocate(layout) else { std::alloc::handle_alloc_error(layout) };
        let mut holes = Holes { first: None, free: 0 };
        if layout.size() > 0 {
            // SAFETY: `system::allocate` has just returned this memory, with this size, and `holes` was made empty above.
            unsafe { holes.release(base, layout.size()) };
        }
        Self { region: Arc::new(Region { base, layout, holes: Mutex::new(holes) }) }
    }

    /// Returns the number of bytes that it has.
    pub fn capacity(&self) -> usize {
        self.region.layout.size()
    }

    /// Returns the number of bytes that frames occupy now.
    pub fn in_use(&self) -> usize {
        self.capacity() - self.region.holes().free
    }
}

/// Returns the size that a frame of this layout occupies, or `None` on overflow.
fn taken(layout: Layout) -> Option<usize> {
    layout.size().checked_next_multiple_of(UNIT)
}

// SAFETY: memory that is handed out is in no hole (rule 3) until it is deallocated, and the region lives with
// the last clone.
unsafe impl Allocator for Bounded {
    fn allocate(&self, layout: Layout) -> Result<NonNull<[u8]>, AllocError> {
        let memory = match taken(layout).ok_or(AllocError)? {
            0 => layout.dangling_ptr(),
            size => self.region.holes().acquire(size, layout.align()).ok_or(AllocError)?,
        };
        Ok(NonNull::slice_from_raw_parts(memory, layout.size()))
    }

    unsafe fn deallocate(&self, memory: NonNull<u8>, layout: Layout) {
        if let Some(size @ 1..) = taken(layout) {
            // SAFETY: `acquire` has cut this frame out of the region, with this size, and `Allocator` says
            // that it is not used any more.
            unsafe { self.region.holes().release(memory, size) };
        }
    }
}

impl Region {
    fn holes(&self) -> MutexGuard<'_, Holes> {
        self.holes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        // SAFETY: it came from `system::allocate` with this layout. Frames hold a handle, so there are none
        // any more.
        unsafe { system::deallocate(self.base, self.layout) };
    }
}

impl Holes {
    /// Cuts a frame out of the first hole that is large enough.
    fn acquire(&mut self, size: usize, align: usize) -> Option<NonNull<u8>> {
        let mut before: Option<HoleRef> = None;
        let mut next = self.first;
        while let Some(at) = next {
            let hole = at.read();
            // Rule 2: the hole begins at a multiple of `UNIT`. So what is skipped is a multiple of it, and
            // fits a hole.
            let skipped = at.0.addr().get().next_multiple_of(align.max(UNIT)) - at.0.addr().get();
            if skipped.checked_add(size).is_none_or(|needed| needed > hole.size) {
                (before, next) = (next, hole.next);
                continue;
            }
            // The frame, and the rests before and after it, lie in the hole: `needed <= hole.size`.
            let after = hole.size - skipped - size;
            let mut rest = hole.next;
            if after > 0 {
                let remainder = HoleRef(at.behind(skipped + size).cast());
                remainder.write(Hole { size: after, next: rest });
                rest = Some(remainder);
            }
            if skipped > 0 {
                at.write(Hole { size: skipped, next: rest });
                rest = Some(at);
            }
            self.link(before, rest);
            self.free -= size;
            return Some(at.behind(skipped));
        }
        None
    }

    /// Turns a frame into a hole, and merges it with adjacent holes.
    ///
    /// # Safety
    /// `size` bytes at `memory` are in the region, in no hole, and not used any more. Address and size are
    /// multiples of `UNIT`.
    unsafe fn release(&mut self, memory: NonNull<u8>, size: usize) {
        let at = HoleRef(memory.cast());
        let mut before: Option<HoleRef> = None;
        let mut next = self.first;
        while let Some(hole) = next.filter(|hole| *hole < at) {
            before = next;
            next = hole.read().next;
        }
        let mut new = Hole { size, next };
        if let Some(hole) = next
            && at.behind(size) == hole.0.cast()
        {
            let Hole { size, next } = hole.read();
            new = Hole { size: new.size + size, next };
        }
        match before {
            Some(hole) if hole.behind(hole.read().size) == memory => {
                hole.write(Hole { size: hole.read().size + new.size, next: new.next });
            }
            _ => {
                at.write(new);
                self.link(before, Some(at));
            }
        }
        self.free += size;
    }

    /// Links `next` after `before`, or as the first hole.
    fn link(&mut self, before: Option<HoleRef>, next: Option<HoleRef>) {
        match before {
            Some(before) => before.write(Hole { next, ..before.read() }),
            None => self.first = next,
        }
    }
}

impl fmt::Debug for Bounded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Bounded").field("in_use", &self.in_use()).field("capacity", &self.capacity()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layout(size: usize, align: usize) -> Layout {
        Layout::from_size_align(size, align).unwrap()
    }

    fn take(memory: &Bounded, layout: Layout) -> Option<NonNull<u8>> {
        memory.allocate(layout).ok().map(NonNull::cast)
    }

    #[test]
    fn adjacent_holes_are_merged_in_whatever_order_they_appear() {
        let part = layout(32, 16);
        for order in [[0, 1, 2, 3], [3, 2, 1, 0], [0, 2, 1, 3], [1, 3, 0, 2], [2, 0, 3, 1]] {
            let memory = Bounded::new(128);
            let frames = [(); 4].map(|()| take(&memory, part).unwrap());
            assert_eq!((memory.in_use(), take(&memory, layout(1, 1))), (128, None));
            for frame in order {
                // SAFETY: each came from there with this layout, and is freed once.
                unsafe { memory.deallocate(frames[frame], part) };
            }
            let whole = layout(128, 16);
            assert_eq!(take(&memory, whole), Some(frames[0]), "freed as {order:?}");
            // SAFETY: it came from there with this layout, and is freed once.
            unsafe { memory.deallocate(frames[0], whole) };
            assert_eq!(memory.in_use(), 0);
        }
    }

    #[test]
    fn memory_that_an_alignment_skips_is_not_lost() {
        let memory = Bounded::new(256);
        let (small, strict) = (layout(16, 16), layout(64, 64));
        let first = take(&memory, small).unwrap();
        let aligned = take(&memory, strict).unwrap();
        assert_eq!(aligned.addr().get() % 64, 0);
        let between = take(&memory, small).unwrap();
        assert!(first < between && between < aligned, "the hole before the aligned frame is used");
        assert_eq!(memory.in_use(), 96);
        // SAFETY: each came from there with this layout, and is freed once.
        unsafe {
            memory.deallocate(first, small);
            memory.deallocate(aligned, strict);
            memory.deallocate(between, small);
        }
        assert_eq!(take(&memory, layout(256, 64)), Some(first));
    }

    #[test]
    fn a_region_of_size_zero_serves_frames_of_size_zero() {
        let memory = Bounded::new(0);
        assert!(take(&memory, layout(0, 64)).is_some());
        assert_eq!((take(&memory, layout(1, 1)), memory.capacity()), (None, 0));
        assert_eq!(take(&memory, layout(isize::MAX as usize, 1)), None);
    }
}
