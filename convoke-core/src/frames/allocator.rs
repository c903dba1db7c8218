//! The handle to where frames live: the environment carries it, and each frame keeps one to be freed with.

#![allow(unsafe_code)]

use core::alloc::Layout;
use core::any::Any;
use core::fmt;
use core::mem::ManuallyDrop;
use core::ptr::{self, NonNull};

use allocator_api2::alloc::{AllocError, Allocator};

use super::Recycling;
use super::erased::{self, Head};

/// Where the frames of a chain live. One word wide; the default, [`Recycling`], is reached without a call through a
/// pointer, and its handle is cloned and dropped for nothing.
///
/// It is chosen where work is launched and inherited by all work below. A frame keeps a clone of the handle it was
/// allocated with, so that it goes back where it came from on whatever thread it ends.
///
/// ```
/// use convoke::env::Changes;
/// use convoke::alloc::{Bounded, FrameAllocator};
/// use convoke::env::Env;
///
/// let tenant = Bounded::new(64 * 1024);
/// let env = Env::new().with(Changes::new().allocator(FrameAllocator::new(tenant.clone())));
/// assert_eq!(env.child().allocator(), env.allocator());
/// assert_eq!(size_of::<FrameAllocator>(), size_of::<usize>());
/// ```
#[repr(transparent)]
pub struct FrameAllocator {
    /// `None` is the default. Else a head of which we have a count.
    head: Option<NonNull<Head>>,
}

// SAFETY: whatever is behind the head is `Send` and `Sync`, and counted with atomics.
unsafe impl Send for FrameAllocator {}
// SAFETY: as above.
unsafe impl Sync for FrameAllocator {}

impl FrameAllocator {
    /// The default: freed frames are kept for the next ones. See [`Recycling`].
    #[inline]
    pub const fn recycling() -> Self {
        Self { head: None }
    }

    /// The program's global allocator.
    pub const fn system() -> Self {
        Self { head: Some(erased::system()) }
    }

    /// Frames from this allocator, which lives as long as a handle to it does. A handle is returned as it is.
    ///
    /// Whatever the allocator does wrong within the contract of `Allocator`, which is an unsafe trait, harms nobody but those
    /// who get no memory: panics are caught, and it may be out of memory at any time, and use frames itself.
    pub fn new<A: Allocator + Send + Sync + 'static>(allocator: A) -> Self {
        let mut allocator = Some(allocator);
        let any = &mut allocator as &mut dyn Any;
        if let Some(handle) = any.downcast_mut::<Option<Self>>() {
            return handle.take().expect("put there above");
        }
        if any.is::<Option<Recycling>>() {
            return Self::recycling();
        }
        Self { head: Some(erased::keep(allocator.expect("put there above"))) }
    }

    /// Memory for this layout, or `None` if there is none left. An allocator that panics counts as one that has none.
    #[inline]
    pub fn allocate(&self, layout: Layout) -> Option<NonNull<u8>> {
        match self.head {
            None => Recycling::allocate(layout),
            // SAFETY: we have a count of the head.
            Some(head) => unsafe { erased::allocate(head, layout) },
        }
    }

    /// Takes memory back.
    ///
    /// # Safety
    /// `memory` came from `allocate` of this allocator or a clone, with this layout, and is not used any more.
    #[inline]
    pub unsafe fn deallocate(&self, memory: NonNull<u8>, layout: Layout) {
        match self.head {
            // SAFETY: the caller's; equal handles lead to the same memory.
            None => unsafe { Recycling::deallocate(memory, layout) },
            // SAFETY: as above; we have a count of the head.
            Some(head) => unsafe { erased::deallocate(head, memory, layout) },
        }
    }

    /// The handle as a word, for the header of a frame; null is the default.
    #[inline]
    pub fn into_raw(self) -> *const () {
        let head = ManuallyDrop::new(self).head;
        head.map_or(ptr::null(), |head| head.as_ptr().cast_const().cast())
    }

    /// The handle again.
    ///
    /// # Safety
    /// `raw` came from [`into_raw`](Self::into_raw), and is made a handle again once.
    #[inline]
    pub unsafe fn from_raw(raw: *const ()) -> Self {
        Self { head: NonNull::new(raw.cast_mut().cast()) }
    }
}

impl Clone for FrameAllocator {
    #[inline]
    fn clone(&self) -> Self {
        if let Some(head) = self.head {
            // SAFETY: we have a count of the head.
            unsafe { erased::retain(head) };
        }
        Self { head: self.head }
    }
}

impl Drop for FrameAllocator {
    #[inline]
    fn drop(&mut self) {
        if let Some(head) = self.head {
            // SAFETY: we have a count of the head, and do not use it again.
            unsafe { erased::release(head) };
        }
    }
}

/// [`Recycling`].
impl Default for FrameAllocator {
    fn default() -> Self {
        Self::recycling()
    }
}

/// Two handles are equal if they lead to the same memory.
impl PartialEq for FrameAllocator {
    #[inline]
    fn eq(&self, other: &Self) -> bool {
        self.head == other.head
    }
}

impl Eq for FrameAllocator {}

// SAFETY: what is behind the handle keeps the contract, all clones of a handle lead to the same, and that lives as long
// as one of them.
unsafe impl Allocator for FrameAllocator {
    fn allocate(&self, layout: Layout) -> Result<NonNull<[u8]>, AllocError> {
        let memory = self.allocate(layout).ok_or(AllocError)?;
        Ok(NonNull::slice_from_raw_parts(memory, layout.size()))
    }

    unsafe fn deallocate(&self, memory: NonNull<u8>, layout: Layout) {
        // SAFETY: the caller's; we gave out no more than was asked for, so this is the layout that was asked with.
        unsafe { self.deallocate(memory, layout) };
    }
}

impl fmt::Debug for FrameAllocator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // SAFETY: we have a count of the head.
        let name = self.head.map_or("recycling", |head| unsafe { erased::name(head) });
        write!(f, "FrameAllocator({name})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frames::{Bounded, Counting};

    #[test]
    fn handles_to_the_same_memory_are_equal_and_no_others() {
        let bounded = FrameAllocator::new(Bounded::new(64));
        assert_eq!(bounded, bounded.clone());
        assert_ne!(bounded, FrameAllocator::new(Bounded::new(64)));
        assert_eq!(FrameAllocator::default(), FrameAllocator::recycling());
        assert_eq!(FrameAllocator::system(), FrameAllocator::system());
        assert_ne!(FrameAllocator::system(), FrameAllocator::recycling());
    }

    #[test]
    fn a_handle_is_not_erased_again_and_the_default_stays_the_default() {
        let bounded = FrameAllocator::new(Bounded::new(64));
        assert_eq!(FrameAllocator::new(bounded.clone()), bounded);
        assert_eq!(FrameAllocator::new(Recycling), FrameAllocator::recycling());
        assert_eq!(FrameAllocator::new(FrameAllocator::system()), FrameAllocator::system());
    }

    #[test]
    fn an_allocator_lives_as_long_as_a_handle_to_it_also_as_a_word() {
        let counting = Counting::new(FrameAllocator::system());
        let handle = FrameAllocator::new(counting.clone());
        assert_eq!(counting.handles(), 2);
        let word = handle.clone().into_raw();
        drop(handle);
        assert_eq!(counting.handles(), 2);
        // SAFETY: it came from `into_raw`, and is made a handle again once.
        drop(unsafe { FrameAllocator::from_raw(word) });
        assert_eq!(counting.handles(), 1);
        assert!(FrameAllocator::recycling().into_raw().is_null());
    }

    #[test]
    fn a_handle_says_what_it_leads_to() {
        assert_eq!(format!("{:?}", FrameAllocator::default()), "FrameAllocator(recycling)");
        assert_eq!(format!("{:?}", FrameAllocator::system()), "FrameAllocator(system)");
        assert!(format!("{:?}", FrameAllocator::new(Bounded::new(0))).contains("Bounded"));
    }
}
