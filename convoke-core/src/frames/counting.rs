//! `Counting`: an allocator for tests, which counts the frames of another one.

#![allow(unsafe_code)]

use core::alloc::Layout;
use core::any::type_name;
use core::fmt;
use core::ptr::NonNull;
use std::sync::Arc;

use allocator_api2::alloc::{AllocError, Allocator};

use crate::sync::atomic::{AtomicUsize, Ordering};

/// An allocator that counts the frames of another one. Clones are handles to the same counts: give one to the
/// work, and ask the other.
///
/// ```
/// use convoke::alloc::{Counting, FrameAllocator};
/// use std::alloc::Layout;
///
/// let counting = Counting::new(FrameAllocator::default());
/// let frames = FrameAllocator::new(counting.clone());
/// let layout = Layout::new::<[u64; 4]>();
/// let frame = frames.allocate(layout).unwrap();
/// assert_eq!((counting.live(), counting.live_bytes()), (1, 32));
/// // SAFETY: it came from there, with this layout.
/// unsafe { frames.deallocate(frame, layout) };
/// assert_eq!((counting.live(), counting.total(), counting.peak()), (0, 1, 1));
/// ```
pub struct Counting<A> {
    shared: Arc<SharedCounts<A>>,
}

struct SharedCounts<A> {
    inner: A,
    live: AtomicUsize,
    live_bytes: AtomicUsize,
    total: AtomicUsize,
    refused: AtomicUsize,
    peak: AtomicUsize,
    peak_bytes: AtomicUsize,
}

impl<A> Counting<A> {
    /// Creates an allocator that takes frames from `inner` and counts them.
    pub fn new(inner: A) -> Self {
        Self {
            shared: Arc::new(SharedCounts {
                inner,
                live: AtomicUsize::new(0),
                live_bytes: AtomicUsize::new(0),
                total: AtomicUsize::new(0),
                refused: AtomicUsize::new(0),
                peak: AtomicUsize::new(0),
                peak_bytes: AtomicUsize::new(0),
            }),
        }
    }

    /// Returns the allocator that the frames come from.
    pub fn inner(&self) -> &A {
        &self.shared.inner
    }

    /// Returns the number of frames that exist now.
    pub fn live(&self) -> usize {
        self.shared.live.load(Ordering::Acquire)
    }

    /// Returns the number of bytes that the existing frames asked for.
    pub fn live_bytes(&self) -> usize {
        self.shared.live_bytes.load(Ordering::Acquire)
    }

    /// Returns the number of frames that were ever allocated.
    pub fn total(&self) -> usize {
        self.shared.total.load(Ordering::Acquire)
    }

    /// Returns how often there was no memory.
    pub fn refused(&self) -> usize {
        self.shared.refused.load(Ordering::Acquire)
    }

    /// Returns the highest number of frames at one time.
    pub fn peak(&self) -> usize {
        self.shared.peak.load(Ordering::Acquire)
    }

    /// Returns the highest number of bytes at one time.
    pub fn peak_bytes(&self) -> usize {
        self.shared.peak_bytes.load(Ordering::Acquire)
    }

    /// Returns the number of handles to these counts, with this one.
    pub fn handles(&self) -> usize {
        Arc::strong_count(&self.shared)
    }
}

// SAFETY: the memory is that of the inner allocator, which lies in the `Arc` and lives with the last clone.
unsafe impl<A: Allocator> Allocator for Counting<A> {
    fn allocate(&self, layout: Layout) -> Result<NonNull<[u8]>, AllocError> {
        let SharedCounts { inner, live, live_bytes, total, refused, peak, peak_bytes } = &*self.shared;
        let Ok(memory) = inner.allocate(layout) else {
            refused.fetch_add(1, Ordering::AcqRel);
            return Err(AllocError);
        };
        total.fetch_add(1, Ordering::AcqRel);
        peak.fetch_max(live.fetch_add(1, Ordering::AcqRel) + 1, Ordering::AcqRel);
        let bytes = live_bytes.fetch_add(layout.size(), Ordering::AcqRel) + layout.size();
        peak_bytes.fetch_max(bytes, Ordering::AcqRel);
        // No more than was asked for, so that the same size comes back that was counted.
        Ok(NonNull::slice_from_raw_parts(memory.cast(), layout.size()))
    }

    unsafe fn deallocate(&self, memory: NonNull<u8>, layout: Layout) {
        // SAFETY: the memory came from `allocate` above, and so from `inner`, with this layout.
        unsafe { self.shared.inner.deallocate(memory, layout) };
        self.shared.live_bytes.fetch_sub(layout.size(), Ordering::AcqRel);
        self.shared.live.fetch_sub(1, Ordering::AcqRel);
    }
}

impl<A> Clone for Counting<A> {
    fn clone(&self) -> Self {
        Self { shared: Arc::clone(&self.shared) }
    }
}

impl<A> fmt::Debug for Counting<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Counting")
            .field("inner", &type_name::<A>())
            .field("live", &self.live())
            .field("live_bytes", &self.live_bytes())
            .field("total", &self.total())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frames::Bounded;

    #[test]
    fn the_peak_stays_and_a_refusal_is_not_a_frame() {
        let counting = Counting::new(Bounded::new(64));
        let layout = Layout::new::<[u64; 4]>();
        let frames = [(); 2].map(|()| counting.allocate(layout).unwrap());
        assert!(counting.allocate(layout).is_err());
        for frame in frames {
            // SAFETY: it came from there with this layout.
            unsafe { counting.deallocate(frame.cast(), layout) };
        }
        assert_eq!((counting.live(), counting.live_bytes()), (0, 0));
        assert_eq!((counting.peak(), counting.peak_bytes()), (2, 64));
        assert_eq!((counting.total(), counting.refused(), counting.inner().in_use()), (2, 1, 0));
    }
}
