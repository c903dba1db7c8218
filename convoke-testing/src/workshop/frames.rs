//! Memory for frames that counts what is out, can be out of memory, and makes it show if what was given back is used.

#![allow(unsafe_code)]

use std::alloc::Layout;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use allocator_api2::alloc::{AllocError, Allocator};
use convoke_core::Env;
use convoke_core::env::{Changes, FrameAllocator};

/// How many frames may be out, how many are, and how many have ever been.
#[derive(Clone, Debug)]
pub struct Frames(Arc<Counts>);

#[derive(Debug)]
struct Counts {
    most: usize,
    out: AtomicUsize,
    ever: AtomicUsize,
    /// What was given back: overwritten with rubbish, and kept until the end.
    ended: Mutex<Vec<Ended>>,
}

#[derive(Debug)]
struct Ended(NonNull<u8>, Layout);

// SAFETY: memory that nobody uses.
unsafe impl Send for Ended {}

impl Frames {
    /// Room for this many at a time.
    pub fn at_most(most: usize) -> Self {
        let ended = Mutex::new(Vec::new());
        Self(Arc::new(Counts { most, out: AtomicUsize::new(0), ever: AtomicUsize::new(0), ended }))
    }

    /// An environment whose frames these are.
    pub fn env(&self) -> Env {
        Env::new().with(Changes::new().allocator(FrameAllocator::new(self.clone())))
    }

    /// How many are out, and how many have ever been.
    pub fn counts(&self) -> (usize, usize) {
        (self.0.out.load(Ordering::Acquire), self.0.ever.load(Ordering::Acquire))
    }
}

// SAFETY: the memory is that of the system's allocator.
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
        // SAFETY: the caller's: nobody uses it any more.
        unsafe { memory.write_bytes(0xDB, layout.size()) };
        self.0.ended.lock().unwrap().push(Ended(memory, layout));
    }
}

impl Drop for Counts {
    fn drop(&mut self) {
        for Ended(memory, layout) in self.ended.get_mut().unwrap().drain(..) {
            // SAFETY: `allocate` took it there, and it was given back.
            unsafe { FrameAllocator::system().deallocate(memory, layout) };
        }
    }
}
