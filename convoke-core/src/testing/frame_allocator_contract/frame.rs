//! A frame under test: filled with a pattern of its own, which must still be there when it is freed.

#![allow(unsafe_code)]

use core::alloc::Layout;
use core::ptr::NonNull;

use crate::frames::FrameAllocator;

/// The allocator, and the number of frames that it made, which gives each frame its pattern.
#[derive(Clone)]
pub(super) struct Frames {
    pub(super) allocator: FrameAllocator,
    pub(super) bounded: bool,
    made: u8,
}

/// A frame that stores the handle it is freed with, as those of tasks do.
pub(super) struct Frame {
    allocator: FrameAllocator,
    memory: NonNull<u8>,
    layout: Layout,
    pattern: u8,
}

// SAFETY: it owns its memory, and the suite tests that frames may be freed on any thread.
unsafe impl Send for Frame {}

impl Frames {
    pub(super) fn new(allocator: FrameAllocator, bounded: bool) -> Self {
        Self { allocator, bounded, made: 0 }
    }

    /// Makes a frame and fills it. Returns `None` if there is no memory, which only an allocator with a bound
    /// may report.
    #[track_caller]
    pub(super) fn try_make(&mut self, size: usize, align: usize) -> Option<Frame> {
        let layout = Layout::from_size_align(size, align).expect("the sizes of this suite are small");
        let Some(memory) = self.allocator.allocate(layout) else {
            assert!(self.bounded, "no memory for {layout:?}, though the allocator has no bound");
            return None;
        };
        assert_eq!(memory.addr().get() % align, 0, "{layout:?} is not aligned");
        self.made = self.made.wrapping_add(1);
        // SAFETY: `size` bytes are ours, if the allocator keeps its contract.
        unsafe { memory.write_bytes(self.made, size) };
        Some(Frame { allocator: self.allocator.clone(), memory, layout, pattern: self.made })
    }

    /// Makes a frame, for which there must be memory.
    #[track_caller]
    pub(super) fn make(&mut self, size: usize, align: usize) -> Frame {
        self.try_make(size, align).expect("the allocator must have memory for this frame")
    }
}

impl Frame {
    pub(super) fn addresses(&self) -> core::ops::Range<usize> {
        let first = self.memory.addr().get();
        first..first + self.layout.size()
    }
}

impl Drop for Frame {
    fn drop(&mut self) {
        // SAFETY: the frame owns these bytes, and they were written when it was made.
        let bytes = unsafe { NonNull::slice_from_raw_parts(self.memory, self.layout.size()).as_ref() };
        // Compared by the slice: under Miri a loop over all bytes takes a minute for each suite.
        let expected = [self.pattern; 1024];
        let intact = bytes.chunks(expected.len()).all(|part| part == &expected[..part.len()]);
        // SAFETY: it came from this allocator with this layout, and is freed once.
        unsafe { self.allocator.deallocate(self.memory, self.layout) };
        if !std::thread::panicking() {
            assert!(intact, "another frame overlaps this one, or the allocator wrote to it");
        }
    }
}
