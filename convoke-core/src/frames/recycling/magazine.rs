//! A stack of freed frames of one class, with a fixed capacity: the unit that threads exchange through the
//! depot.

#![allow(unsafe_code)]

use core::alloc::Layout;
use core::ptr::NonNull;

use super::classes::Class;
use crate::frames::system;

/// A slot of a magazine. The first `len` of them hold frames.
pub(super) type Slot = NonNull<u8>;

/// A stack of freed frames. It does not store its class, and has no destructor: its holder knows the class,
/// and calls [`destroy`](Magazine::destroy).
pub(super) struct Magazine {
    pub(super) slots: NonNull<Slot>,
    pub(super) len: usize,
}

// SAFETY: it owns its slots and the frames in them, which are not used.
unsafe impl Send for Magazine {}

impl Magazine {
    fn layout(class: Class) -> Layout {
        Layout::array::<Slot>(class.magazine()).expect("a magazine is small")
    }

    /// Creates an empty magazine, or returns `None` if there is no memory.
    pub(super) fn new(class: Class) -> Option<Self> {
        Some(Self { slots: system::allocate(Self::layout(class))?.cast(), len: 0 })
    }

    pub(super) fn bytes(&self, class: Class) -> usize {
        self.len * class.size()
    }

    /// Returns its frames to the system.
    ///
    /// # Safety
    /// The magazine is of this class.
    pub(super) unsafe fn empty(&mut self, class: Class) {
        for index in 0..self.len {
            // SAFETY: the first `len` slots hold frames of this class, which we own and which were allocated
            // with its layout.
            unsafe { system::deallocate(self.slots.add(index).read(), class.layout()) };
        }
        self.len = 0;
    }

    /// Returns its frames and its own memory to the system.
    ///
    /// # Safety
    /// The magazine is of this class.
    pub(super) unsafe fn destroy(mut self, class: Class) {
        // SAFETY: it is of this class, by the contract, and `new` has allocated the slots with this layout.
        unsafe {
            self.empty(class);
            system::deallocate(self.slots.cast(), Self::layout(class));
        }
    }
}
