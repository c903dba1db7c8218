//! Size classes of frames: fine steps where most frames are, four to a doubling above.

use core::alloc::Layout;

/// Up to this size the classes are `FINE_STEP` apart.
const FINE_MAX: usize = 512;
const FINE_STEP: usize = 16;
const FINE_CLASSES: usize = FINE_MAX / FINE_STEP;
/// Larger frames go to the system: they are rare, and filling them costs more than allocating them.
const MAX_SIZE: usize = 16 * 1024;
/// Frames with a larger alignment go to the system: they are too rare to have classes of their own.
const MAX_ALIGN: usize = 16;
/// The number of classes between two powers of two.
const COARSE_STEPS: usize = 4;
const COARSE_CLASSES: usize = COARSE_STEPS * (MAX_SIZE.ilog2() - FINE_MAX.ilog2()) as usize;

/// The number of classes.
pub(super) const CLASSES: usize = FINE_CLASSES + COARSE_CLASSES;

/// A magazine holds frames of this many bytes in all, but at least `MAGAZINE_MIN` and at most `MAGAZINE_MAX`
/// frames.
const MAGAZINE_BYTES: usize = 32 * 1024;
const MAGAZINE_MIN: usize = 4;
const MAGAZINE_MAX: usize = 64;

/// A size class. Its number is less than [`CLASSES`]: only `of` and `all` create one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Class(u16);

impl Class {
    /// Returns the class of this layout, or `None` if the system serves it. That includes a size of zero.
    #[inline]
    pub(super) const fn of(layout: Layout) -> Option<Self> {
        // Minus one, so that zero wraps to the largest number.
        let last = layout.size().wrapping_sub(1);
        if layout.align() > MAX_ALIGN || last >= MAX_SIZE {
            None
        } else if last < FINE_MAX {
            Some(Self((last / FINE_STEP) as u16))
        } else {
            let power = last.ilog2() as usize;
            let step = (last >> (power - COARSE_STEPS.ilog2() as usize)) % COARSE_STEPS;
            let coarse = (power - FINE_MAX.ilog2() as usize) * COARSE_STEPS + step;
            Some(Self((FINE_CLASSES + coarse) as u16))
        }
    }

    pub(super) fn all() -> impl Iterator<Item = Self> {
        (0..CLASSES as u16).map(Self)
    }

    #[inline]
    pub(super) const fn number(self) -> usize {
        self.0 as usize
    }

    /// Returns the size of its frames.
    pub(super) const fn size(self) -> usize {
        match self.number().checked_sub(FINE_CLASSES) {
            None => (self.number() + 1) * FINE_STEP,
            Some(coarse) => {
                let (doublings, step) = (coarse / COARSE_STEPS, coarse % COARSE_STEPS);
                ((COARSE_STEPS + step + 1) * (FINE_MAX / COARSE_STEPS)) << doublings
            }
        }
    }

    /// Returns the layout by which its frames are allocated from the system.
    pub(super) const fn layout(self) -> Layout {
        match Layout::from_size_align(self.size(), MAX_ALIGN) {
            Ok(layout) => layout,
            Err(_) => unreachable!(),
        }
    }

    /// Returns the number of frames in a full magazine.
    pub(super) const fn magazine(self) -> usize {
        let fitting = MAGAZINE_BYTES / self.size();
        if fitting < MAGAZINE_MIN {
            MAGAZINE_MIN
        } else if fitting > MAGAZINE_MAX {
            MAGAZINE_MAX
        } else {
            fitting
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(size: usize) -> Option<Class> {
        Class::of(Layout::from_size_align(size, 8).unwrap())
    }

    #[test]
    fn each_size_is_in_the_smallest_class_that_holds_it() {
        for size in 1..=MAX_SIZE {
            let class = of(size).unwrap();
            assert!(class.size() >= size, "{size} in a class of {}", class.size());
            let smaller = class.number().checked_sub(1).map_or(0, |number| Class(number as u16).size());
            assert!(smaller < size, "{size} fits {smaller}");
        }
        assert_eq!(Class::all().last(), of(MAX_SIZE));
        assert_eq!(Class(CLASSES as u16 - 1).size(), MAX_SIZE);
    }

    #[test]
    fn sizes_and_alignments_that_the_system_serves_have_no_class() {
        assert_eq!((of(0), of(MAX_SIZE + 1)), (None, None));
        assert_eq!(Class::of(Layout::from_size_align(64, 2 * MAX_ALIGN).unwrap()), None);
    }
}
