//! The handle to a frame allocator: the environment carries one, and each frame stores one to be freed with.

#![allow(unsafe_code)]

use core::alloc::Layout;
use core::any::Any;
use core::fmt;
use core::ptr::{self, NonNull};

use allocator_api2::alloc::{AllocError, Allocator};

use super::Recycling;
use super::erased::Counted;

/// A handle to the allocator for the frames of a chain of work. One word wide. The default, [`Recycling`], is
/// called without a function pointer, and cloning and dropping its handle costs nothing.
///
/// It is chosen where work is launched and inherited by all work below. A frame stores a clone of the handle
/// it was allocated with, and goes back through it on any thread.
///
/// When there is no memory left, what the program starts fails, with an error or a panic that says so: a task, a
/// scope, an operation, a `frame(…)`. Stop sources, wakers, locals and clean-ups come from the global allocator
/// then: a stop, a wake-up or a clean-up does not fail for lack of memory.
///
/// ```
/// use convoke::env::Changes;
/// use convoke::alloc::{Bounded, FrameAllocator};
/// use convoke::env::Env;
///
/// let tenant = Bounded::new(64 * 1024);
/// let allocator = FrameAllocator::new(tenant.clone());
/// let env = Env::new().with(Changes::new().allocator(allocator));
/// assert_eq!(env.child().allocator(), env.allocator());
/// assert_eq!(size_of::<FrameAllocator>(), size_of::<usize>());
/// ```
///
/// Handles are compared by allocator: two handles are equal if they lead to the same one.
#[derive(Clone, PartialEq, Eq)]
#[repr(transparent)]
pub struct FrameAllocator {
    /// `None` is the default, [`Recycling`].
    other: Option<Counted>,
}

impl FrameAllocator {
    /// Returns the default, which caches freed frames for the next ones: see [`Recycling`].
    #[inline]
    pub const fn recycling() -> Self {
        Self { other: None }
    }

    /// Returns the program's global allocator.
    pub const fn system() -> Self {
        Self { other: Some(Counted::system()) }
    }

    /// Creates a handle to this allocator, which lives as long as a handle to it. A [`FrameAllocator`] is
    /// returned as it is.
    ///
    /// The allocator may panic, fail at any time, and allocate frames itself: panics are caught, and the work
    /// that gets no memory is the only one that is affected.
    pub fn new<A: Allocator + Send + Sync + 'static>(allocator: A) -> Self {
        let mut allocator = Some(allocator);
        let any = &mut allocator as &mut dyn Any;
        if let Some(handle) = any.downcast_mut::<Option<Self>>() {
            return handle.take().expect("`allocator` was set to `Some` above");
        }
        if any.is::<Option<Recycling>>() {
            return Self::recycling();
        }
        Self { other: Some(Counted::new(allocator.expect("`allocator` was set to `Some` above"))) }
    }

    /// Allocates memory for this layout. Returns `None` if there is none left, or if the allocator panics.
    #[inline]
    pub fn allocate(&self, layout: Layout) -> Option<NonNull<u8>> {
        match &self.other {
            None => Recycling::allocate(layout),
            Some(other) => other.allocate(layout),
        }
    }

    /// Frees memory.
    ///
    /// # Safety
    /// `memory` came from `allocate` of this allocator or a clone, with this layout, and is not used any
    /// more.
    #[inline]
    pub unsafe fn deallocate(&self, memory: NonNull<u8>, layout: Layout) {
        // SAFETY: the memory came from `allocate` of an equal handle, which has chosen the same allocator.
        unsafe {
            match &self.other {
                None => Recycling::deallocate(memory, layout),
                Some(other) => other.deallocate(memory, layout),
            }
        }
    }

    /// Converts the handle to a word, for the header of a frame. Null is the default.
    #[inline]
    pub fn into_raw(self) -> *const () {
        self.other.map_or(ptr::null(), Counted::into_raw)
    }

    /// Converts a word back to the handle.
    ///
    /// # Safety
    /// `raw` came from [`into_raw`](Self::into_raw), and this is called once for it.
    #[inline]
    pub unsafe fn from_raw(raw: *const ()) -> Self {
        // SAFETY: a word that is not null came from `Counted::into_raw`, and is converted back once.
        Self { other: NonNull::new(raw.cast_mut()).map(|raw| unsafe { Counted::from_raw(raw) }) }
    }
}

/// Returns [`Recycling`].
impl Default for FrameAllocator {
    fn default() -> Self {
        Self::recycling()
    }
}

// SAFETY: `Counted::new` and `Recycling` require or keep the contract of `Allocator`. All clones of a handle lead to
// the same allocator, which lives as long as one of them.
unsafe impl Allocator for FrameAllocator {
    fn allocate(&self, layout: Layout) -> Result<NonNull<[u8]>, AllocError> {
        let memory = self.allocate(layout).ok_or(AllocError)?;
        Ok(NonNull::slice_from_raw_parts(memory, layout.size()))
    }

    unsafe fn deallocate(&self, memory: NonNull<u8>, layout: Layout) {
        // SAFETY: the memory came from `allocate` above. That returns no more than was asked for, so this is
        // the layout that was asked for.
        unsafe { self.deallocate(memory, layout) };
    }
}

impl fmt::Debug for FrameAllocator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.other.as_ref().map_or("recycling", Counted::name);
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
    fn an_allocator_lives_as_long_as_a_handle_or_a_raw_word() {
        let counting = Counting::new(FrameAllocator::system());
        let handle = FrameAllocator::new(counting.clone());
        assert_eq!(counting.handles(), 2);
        let word = handle.clone().into_raw();
        drop(handle);
        assert_eq!(counting.handles(), 2);
        // SAFETY: it came from `into_raw`, and is converted back once.
        drop(unsafe { FrameAllocator::from_raw(word) });
        assert_eq!(counting.handles(), 1);
        assert!(FrameAllocator::recycling().into_raw().is_null());
    }

    #[test]
    fn a_handle_names_its_allocator() {
        assert_eq!(format!("{:?}", FrameAllocator::default()), "FrameAllocator(recycling)");
        assert_eq!(format!("{:?}", FrameAllocator::system()), "FrameAllocator(system)");
        assert!(format!("{:?}", FrameAllocator::new(Bounded::new(0))).contains("Bounded"));
    }
}
