//! A stack of freed frames of one class, with a fixed capacity: the unit that threads exchange through the
//! depot.

#![allow(unsafe_code)]

use core::alloc::Layout;
use core::mem::ManuallyDrop;
use core::ptr::NonNull;

use super::classes::Class;
use crate::frames::system;

/// A slot of a magazine.
pub(super) type Slot = NonNull<u8>;

/// A stack of freed frames. Dropping it returns its frames and its own memory to the system.
///
/// 1. It owns memory for as many slots as the class says: `new` has allocated it.
/// 2. The first `len` slots hold frames that it owns, and that were allocated with the layout of the class.
pub(super) struct Magazine {
    slots: NonNull<Slot>,
    len: u16,
    class: Class,
}

// SAFETY: it owns its slots and the frames in them, which are not used.
unsafe impl Send for Magazine {}

impl Magazine {
    fn layout(class: Class) -> Layout {
        Layout::array::<Slot>(class.magazine()).expect("a magazine is small")
    }

    /// Creates an empty magazine, or returns `None` if there is no memory.
    pub(super) fn new(class: Class) -> Option<Self> {
        Some(Self { slots: system::allocate(Self::layout(class))?.cast(), len: 0, class })
    }

    /// Takes a magazine apart: its slots, and how many of them hold frames.
    pub(super) fn into_parts(self) -> (NonNull<Slot>, usize) {
        let this = ManuallyDrop::new(self);
        (this.slots, this.len.into())
    }

    /// Puts a magazine together again.
    ///
    /// # Safety
    /// The slots came from `into_parts` of a magazine of this class, and this is called once for them. The
    /// first `len` hold frames, as rule 2 says.
    pub(super) unsafe fn from_parts(class: Class, slots: NonNull<Slot>, len: usize) -> Self {
        Self { slots, len: len as u16, class }
    }

    pub(super) fn class(&self) -> Class {
        self.class
    }

    pub(super) fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns the size of its frames, in all.
    pub(super) fn bytes(&self) -> usize {
        usize::from(self.len) * self.class.size()
    }

    /// Returns its frames to the system.
    pub(super) fn clear(&mut self) {
        for index in 0..usize::from(core::mem::take(&mut self.len)) {
            // SAFETY: rule 2: this slot holds a frame that is ours, with this layout. `len` is zero by now, so
            // that it is freed once.
            unsafe { system::deallocate(self.slots.add(index).read(), self.class.layout()) };
        }
    }
}

impl Drop for Magazine {
    fn drop(&mut self) {
        self.clear();
        // SAFETY: rule 1: `new` has allocated the slots with this layout, and the destructor runs once.
        unsafe { system::deallocate(self.slots.cast(), Self::layout(self.class)) };
    }
}
