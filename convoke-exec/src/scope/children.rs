//! The children of a scope, in two lists: those that were asked to stop, and those that were not. Linked through the tasks:
//! adding one allocates nothing. The scope's lock guards them.

use core::ptr::{self, NonNull};

use crate::task::TaskHeader;

/// The lists. They do not move while there is somebody in them.
pub(super) struct Children {
    running: *mut TaskHeader,
    asked: *mut TaskHeader,
    count: usize,
}

// SAFETY: the tasks in the lists have not left, and their links are touched under the scope's lock.
unsafe impl Send for Children {}

impl Children {
    pub(super) const fn new() -> Self {
        Self { running: ptr::null_mut(), asked: ptr::null_mut(), count: 0 }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Adds a child that is asked to stop from the beginning, or not.
    ///
    /// # Safety
    /// The child is in no list and does not leave before it was removed; the lists do not move meanwhile.
    #[inline]
    pub(super) unsafe fn add(&mut self, child: NonNull<TaskHeader>, asked: bool) {
        self.count += 1;
        // SAFETY: the caller's.
        unsafe { link(if asked { &raw mut self.asked } else { &raw mut self.running }, child) };
    }

    /// Removes a child. True if it was the last.
    ///
    /// # Safety
    /// It was added and not removed.
    #[inline]
    pub(super) unsafe fn remove(&mut self, child: NonNull<TaskHeader>) -> bool {
        self.count -= 1;
        // SAFETY: the caller's.
        unsafe { unlink(child) };
        self.count == 0
    }

    /// Takes a child that is to be asked to stop, if there is one left.
    pub(super) fn next_to_ask(&mut self) -> Option<NonNull<TaskHeader>> {
        let child = NonNull::new(self.running)?;
        // SAFETY: it is in the list, and has not left.
        unsafe {
            unlink(child);
            link(&raw mut self.asked, child);
        }
        Some(child)
    }

    /// All of them, newest first.
    pub(super) fn for_each(&self, mut f: impl FnMut(NonNull<TaskHeader>)) {
        for head in [self.running, self.asked] {
            let mut next = head;
            while let Some(child) = NonNull::new(next) {
                // SAFETY: it is in the list, and has not left.
                next = unsafe { (*child.as_ref().links.get()).next };
                f(child);
            }
        }
    }
}

/// # Safety
/// The child is in no list; `head` is that of a list that does not move.
#[inline]
unsafe fn link(head: *mut *mut TaskHeader, child: NonNull<TaskHeader>) {
    // SAFETY: the caller's; whoever is in the list has not left.
    unsafe {
        let links = child.as_ref().links.get();
        (*links).next = *head;
        (*links).pointed_by = head;
        if let Some(next) = NonNull::new(*head) {
            (*next.as_ref().links.get()).pointed_by = &raw mut (*links).next;
        }
        *head = child.as_ptr();
    }
}

/// # Safety
/// The child is in a list.
#[inline]
unsafe fn unlink(child: NonNull<TaskHeader>) {
    // SAFETY: the caller's; whoever is in the list has not left.
    unsafe {
        let links = child.as_ref().links.get();
        *(*links).pointed_by = (*links).next;
        if let Some(next) = NonNull::new((*links).next) {
            (*next.as_ref().links.get()).pointed_by = (*links).pointed_by;
        }
    }
}
