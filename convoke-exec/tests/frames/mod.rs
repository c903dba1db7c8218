//! Memory for frames that counts what is out, and can be out of memory.

#![allow(unreachable_pub)]

use std::alloc::Layout;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use convoke_core::Env;
use convoke_core::env::{Changes, FrameAllocator};
use convoke_core::raw::FrameMemory;

/// How many frames may be out, how many are, and how many have ever been.
#[derive(Clone, Debug, Default)]
pub struct Frames(Arc<Counts>);

#[derive(Debug, Default)]
struct Counts {
    most: usize,
    out: AtomicUsize,
    ever: AtomicUsize,
}

impl Frames {
    /// Room for this many at a time.
    pub fn at_most(most: usize) -> Self {
        Self(Arc::new(Counts { most, ..Counts::default() }))
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
unsafe impl FrameMemory for Frames {
    fn allocate(&self, layout: Layout) -> Option<NonNull<u8>> {
        if self.0.out.fetch_add(1, Ordering::AcqRel) >= self.0.most {
            self.0.out.fetch_sub(1, Ordering::AcqRel);
            return None;
        }
        self.0.ever.fetch_add(1, Ordering::AcqRel);
        FrameAllocator::system().allocate(layout)
    }

    unsafe fn deallocate(&self, memory: NonNull<u8>, layout: Layout) {
        self.0.out.fetch_sub(1, Ordering::AcqRel);
        // SAFETY: the caller's; `allocate` took it there.
        unsafe { FrameAllocator::system().deallocate(memory, layout) };
    }
}
