//! A frame allocator that counts its frames, can run out of memory, and overwrites freed memory so that a use
//! after free shows.

#![allow(unsafe_code)]

use std::alloc::Layout;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use allocator_api2::alloc::{AllocError, Allocator};
use convoke_core::Env;
use convoke_core::env::{Changes, FrameAllocator};

/// A frame allocator with a limit, and counts of its live and total frames.
#[derive(Clone, Debug)]
pub struct Frames(Arc<Counts>);

#[derive(Debug)]
struct Counts {
    most: usize,
    out: AtomicUsize,
    ever: AtomicUsize,
    /// Freed memory, overwritten and stored until the allocator is dropped.
    ended: Mutex<Vec<Ended>>,
}

#[derive(Debug)]
struct Ended(NonNull<u8>, Layout);

// SAFETY: `Ended` owns the memory: `deallocate` got it from its last user.
unsafe impl Send for Ended {}

impl Frames {
    /// Creates an allocator for at most `most` live frames.
    pub fn at_most(most: usize) -> Self {
        let ended = Mutex::new(Vec::new());
        Self(Arc::new(Counts { most, out: AtomicUsize::new(0), ever: AtomicUsize::new(0), ended }))
    }

    /// Returns an environment with this allocator.
    pub fn env(&self) -> Env {
        Env::new().with(Changes::new().allocator(FrameAllocator::new(self.clone())))
    }

    /// Returns the numbers of live frames and of all frames so far.
    pub fn counts(&self) -> (usize, usize) {
        (self.0.out.load(Ordering::Acquire), self.0.ever.load(Ordering::Acquire))
    }
}

// SAFETY: `allocate` returns memory of the system's allocator, and it stays valid until the last clone is
// dropped, because `deallocate` only stores it.
unsafe impl Allocator for Frames {
    fn allocate(&self, layout: Layout) -> Result<NonNull<[u8]>, AllocError> {
        if self.0.out.fetch_add(1, Ordering::AcqRel) >= self.0.most {
            self.0.out.fetch_sub(1, Ordering::AcqRel);
            return Err(AllocError);
        }
        self.0.ever.fetch_add(1, Ordering::AcqRel);
        let memory = FrameAllocator::system().allocate(layout).ok_or(AllocError)?;
        Ok(NonNull::slice_from_raw_parts(memory, layout.size()))
    }

    unsafe fn deallocate(&self, memory: NonNull<u8>, layout: Layout) {
        self.0.out.fetch_sub(1, Ordering::AcqRel);
        // SAFETY: the caller of `deallocate` gives up the memory, which has `layout.size()` bytes.
        unsafe { memory.write_bytes(0xDB, layout.size()) };
        self.0.ended.lock().unwrap().push(Ended(memory, layout));
    }
}

impl Drop for Counts {
    fn drop(&mut self) {
        for Ended(memory, layout) in self.ended.get_mut().unwrap().drain(..) {
            // SAFETY: `allocate` got it from the same allocator with this layout, and `deallocate` put it
            // here once.
            unsafe { FrameAllocator::system().deallocate(memory, layout) };
        }
    }
}
