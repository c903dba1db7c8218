//! A stack of freed frames of one class, with room for a fixed number: what threads pass each other through the depot.

#![allow(unsafe_code)]

use core::alloc::Layout;
use core::ptr::NonNull;

use super::classes::Class;
use crate::frames::system;

/// A place in a magazine: the first `len` of them hold frames.
pub(super) type Slot = NonNull<u8>;

/// It does not know its class, and is emptied and destroyed by hand: whoever holds it knows both.
pub(super) struct Magazine {
    pub(super) slots: NonNull<Slot>,
    pub(super) len: usize,
}

// SAFETY: it owns its slots, and the frames in them, which nobody uses.
unsafe impl Send for Magazine {}

impl Magazine {
    fn layout(class: Class) -> Layout {
        Layout::array::<Slot>(class.magazine()).expect("a few words")
    }

    /// An empty one; `None` if there is no memory.
    pub(super) fn new(class: Class) -> Option<Self> {
        Some(Self { slots: system::allocate(Self::layout(class))?.cast(), len: 0 })
    }

    pub(super) fn bytes(&self, class: Class) -> usize {
        self.len * class.size()
    }

    /// Gives its frames back to the system.
    ///
    /// # Safety
    /// It is of this class.
    pub(super) unsafe fn empty(&mut self, class: Class) {
        for place in 0..self.len {
            // SAFETY: the first `len` slots hold frames of this class, which are ours and were asked with its layout.
            unsafe { system::deallocate(self.slots.add(place).read(), class.layout()) };
        }
        self.len = 0;
    }

    /// Gives its frames and itself back to the system.
    ///
    /// # Safety
    /// It is of this class.
    pub(super) unsafe fn destroy(mut self, class: Class) {
        // SAFETY: the caller's; the slots were asked with this layout.
        unsafe {
            self.empty(class);
            system::deallocate(self.slots.cast(), Self::layout(class));
        }
    }
}
