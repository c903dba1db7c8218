//! An `Arc` whose memory comes from a frame allocator.

#![allow(unsafe_code)]

use core::alloc::Layout;
use core::fmt;
use core::mem::ManuallyDrop;
use core::ops::Deref;
use core::ptr::NonNull;

use super::FrameAllocator;
use super::system;
use crate::sync::atomic::{AtomicUsize, Ordering};
use crate::sync::thread;

/// A counted pointer to a value in memory of a frame allocator. One word wide.
pub struct FrameArc<T> {
    counted: NonNull<Counted<T>>,
}

/// The largest number of references. A thread that is refused one counts it for a moment; there are fewer
/// threads than fit between this and an overflow.
const MOST: usize = isize::MAX as usize;

struct Counted<T> {
    references: AtomicUsize,
    allocator: FrameAllocator,
    value: T,
}

// SAFETY: as for `Arc`: the value is shared, and the last reference drops it on any thread.
unsafe impl<T: Send + Sync> Send for FrameArc<T> {}
// SAFETY: as for `Arc`: `&FrameArc<T>` gives `&T`, and clones.
unsafe impl<T: Send + Sync> Sync for FrameArc<T> {}

/// Memory that goes back where it came from, also if what is made or dropped in it panics.
struct Memory<T> {
    allocator: FrameAllocator,
    counted: NonNull<Counted<T>>,
}

impl<T> Memory<T> {
    /// Keeps the memory, and returns its allocator.
    #[inline]
    fn keep(self) -> FrameAllocator {
        let mut this = ManuallyDrop::new(self);
        core::mem::take(&mut this.allocator)
    }
}

impl<T> Drop for Memory<T> {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: `allocate` of this allocator returned the memory for this layout. `new` drops this only if `make` has
        // panicked, so no value is in it; `into_inner` and `destroy` drop it after they took the value out.
        unsafe { self.allocator.deallocate(self.counted.cast(), Layout::new::<Counted<T>>()) };
    }
}

impl<T> FrameArc<T> {
    /// Allocates memory and fills it with what `make` returns, which is told the address. Returns `None` if
    /// there is no memory.
    pub fn new(allocator: &FrameAllocator, make: impl FnOnce(NonNull<T>) -> T) -> Option<Self> {
        let counted = allocator.allocate(Layout::new::<Counted<T>>())?.cast::<Counted<T>>();
        let memory = Memory { allocator: allocator.clone(), counted };
        // SAFETY: the memory has the layout of `Counted<T>`, and nothing else uses it.
        unsafe {
            let value = NonNull::new_unchecked(&raw mut (*counted.as_ptr()).value);
            let value = make(value);
            counted.write(Counted { references: AtomicUsize::new(1), allocator: memory.keep(), value });
        }
        Some(Self { counted })
    }

    /// Moves a value into memory of this allocator, or of the global one if that has none left: for what must not
    /// fail for lack of memory in a task, such as the way back of a resource that is to be closed.
    pub fn new_in(allocator: &FrameAllocator, value: T) -> Self {
        let layout = Layout::new::<Counted<T>>();
        let (memory, allocator) = match allocator.allocate(layout) {
            Some(memory) => (memory, allocator.clone()),
            None => (system::allocate_or_abort(layout), FrameAllocator::system()),
        };
        let counted = memory.cast::<Counted<T>>();
        // SAFETY: the memory has the layout of `Counted<T>`, and nothing else uses it.
        unsafe { counted.write(Counted { references: AtomicUsize::new(1), allocator, value }) };
        Self { counted }
    }

    /// Returns true if both point to the same value.
    #[inline]
    pub fn ptr_eq(this: &Self, other: &Self) -> bool {
        this.counted == other.counted
    }

    /// Returns the value, if this is the only reference.
    pub fn get_mut(this: &mut Self) -> Option<&mut T> {
        // SAFETY: this is the only reference, and it is borrowed for as long as the value.
        this.is_unique().then(|| unsafe { &mut (*this.counted.as_ptr()).value })
    }

    /// Returns the value, and frees the memory, if this was the last reference. Of several threads that call this for
    /// all references, just one gets the value.
    pub fn into_inner(this: Self) -> Option<T> {
        let this = ManuallyDrop::new(this);
        if !this.release() {
            return None;
        }
        let counted = this.counted.as_ptr();
        // SAFETY: `release` said that this was the last reference. The value and the allocator are read once, and what
        // is in the memory is not dropped.
        unsafe {
            let memory =
                Memory { allocator: (&raw const (*counted).allocator).read(), counted: this.counted };
            let value = (&raw const (*counted).value).read();
            drop(memory);
            Some(value)
        }
    }

    /// Returns true if this is the only reference. What others did with the value before they dropped theirs comes
    /// before this.
    pub fn is_unique(&self) -> bool {
        self.counted().references.load(Ordering::Acquire) == 1
    }

    /// Panics, and takes back the reference that was one too many: clones were forgotten.
    #[cold]
    #[inline(never)]
    fn refuse(&self) -> ! {
        self.counted().references.fetch_sub(1, Ordering::Relaxed);
        panic!("more than {MOST} references to one value: clones were forgotten, not dropped");
    }

    /// Waits until this is the only reference. The threads that have the others are about to drop them.
    pub fn wait_until_unique(&self) {
        while !self.is_unique() {
            thread::yield_now();
        }
    }

    /// Returns an address for [`count_raw`](FrameArc::count_raw) and [`from_raw`](FrameArc::from_raw).
    #[inline]
    pub fn as_raw(this: &Self) -> NonNull<()> {
        this.counted.cast()
    }

    /// Counts a reference, for `from_raw`.
    ///
    /// # Safety
    /// `as_raw` of this type returned the address, and there is a reference for as long as this takes.
    pub unsafe fn count_raw(raw: NonNull<()>) {
        let this = ManuallyDrop::new(Self { counted: raw.cast() });
        core::mem::forget(Self::clone(&this));
    }

    /// Takes over a reference that was counted.
    ///
    /// # Safety
    /// `as_raw` of this type returned the address, and `count_raw` was called for this call.
    pub unsafe fn from_raw(raw: NonNull<()>) -> Self {
        Self { counted: raw.cast() }
    }

    /// Gives up a reference. Returns true if it was the last one.
    #[inline]
    fn release(&self) -> bool {
        let is_last = self.counted().references.fetch_sub(1, Ordering::Release) == 1;
        if is_last {
            // Orders what other threads did before they dropped their references before the destructor. A
            // load and not a fence, which ThreadSanitizer does not support.
            self.counted().references.load(Ordering::Acquire);
        }
        is_last
    }

    /// Drops the value, and frees the memory: this was the last reference. A function of its own, because the
    /// destructor is copied to wherever a reference is dropped.
    #[inline(never)]
    fn destroy(&mut self) {
        // SAFETY: `Drop::drop`, the only caller, was told by `release` that this was the last reference. It does not come back,
        // so the value is dropped once.
        unsafe {
            let _memory = Memory { allocator: self.counted().allocator.clone(), counted: self.counted };
            self.counted.drop_in_place();
        }
    }

    fn counted(&self) -> &Counted<T> {
        // SAFETY: each `FrameArc` stands for one of `references`, and the memory is freed only when `release` has counted
        // the last one down.
        unsafe { self.counted.as_ref() }
    }
}

impl<T> Clone for FrameArc<T> {
    #[inline]
    fn clone(&self) -> Self {
        let before = self.counted().references.fetch_add(1, Ordering::Relaxed);
        if before > MOST {
            self.refuse();
        }
        Self { counted: self.counted }
    }
}

impl<T> Deref for FrameArc<T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        &self.counted().value
    }
}

impl<T> Drop for FrameArc<T> {
    #[inline]
    fn drop(&mut self) {
        if self.release() {
            self.destroy();
        }
    }
}

impl<T> Unpin for FrameArc<T> {}

impl<T> fmt::Debug for FrameArc<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FrameArc").finish_non_exhaustive()
    }
}

#[cfg(all(test, not(feature = "loom")))]
mod tests {
    use super::*;
    use crate::frames::{Bounded, Counting};

    #[test]
    fn a_count_that_would_overflow_is_refused_and_the_value_stays() {
        let value = FrameArc::new(&FrameAllocator::default(), |_| String::from("stays")).unwrap();
        value.counted().references.store(MOST + 1, Ordering::Relaxed);
        let refused = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| value.clone()));
        assert!(refused.is_err(), "it was counted beyond what there can be");
        assert_eq!(value.counted().references.load(Ordering::Relaxed), MOST + 1);
        value.counted().references.store(1, Ordering::Relaxed);
        assert_eq!(value.as_str(), "stays");
    }

    #[test]
    fn the_last_reference_takes_the_value_out_and_frees_its_memory() {
        let counting = Counting::new(FrameAllocator::system());
        let one = FrameArc::new_in(&FrameAllocator::new(counting.clone()), String::from("value"));
        let mut other = one.clone();
        assert!(FrameArc::get_mut(&mut other).is_none(), "there are two");
        assert_eq!(FrameArc::into_inner(one), None);
        FrameArc::get_mut(&mut other).unwrap().push('s');
        assert_eq!(FrameArc::into_inner(other), Some(String::from("values")));
        assert_eq!((counting.live(), counting.handles()), (0, 1));
    }

    #[test]
    fn what_must_not_fail_lies_in_the_global_allocators_memory_if_there_is_no_other() {
        let full = FrameAllocator::new(Bounded::new(0));
        let value = FrameArc::new_in(&full, [7_u8; 100]);
        assert_eq!(value.counted().allocator, FrameAllocator::system());
        assert_eq!(FrameArc::into_inner(value), Some([7; 100]));
    }
}
