//! The children of a scope, in three lists: those that were not asked to stop, those that were, and those that were asked
//! from the beginning. Linked through the tasks: adding one allocates nothing. The scope's lock guards them.

use core::ptr::{self, NonNull};

use crate::task::TaskHeader;
use crate::tree::Found;

/// The lists. They do not move while there is somebody in them.
pub(super) struct Children {
    running: *mut TaskHeader,
    asked: *mut TaskHeader,
    late: *mut TaskHeader,
    count: usize,
}

// SAFETY: the tasks in the lists have not left, and their links are touched under the scope's lock.
unsafe impl Send for Children {}

impl Children {
    pub(super) const fn new() -> Self {
        Self { running: ptr::null_mut(), asked: ptr::null_mut(), late: ptr::null_mut(), count: 0 }
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
        unsafe { link(if asked { &raw mut self.late } else { &raw mut self.running }, child) };
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

    /// Tells of all of them, the oldest first. Each list has its newest first, except that of those who were asked: they were
    /// taken from the others one by one, the newest first, so that they are younger than the rest, and in order.
    pub(super) fn look(&self, found: &mut Found, above: Option<NonNull<TaskHeader>>) {
        let look = |head: *mut TaskHeader, found: &mut Found| {
            let mut next = head;
            while let Some(child) = NonNull::new(next) {
                // SAFETY: it is in the list, and has not left.
                let child = unsafe { child.as_ref() };
                found.task(child, above);
                // SAFETY: as above; the scope's lock is held.
                next = unsafe { (*child.links.get()).next };
            }
        };
        found.reversed(|found| look(self.running, found));
        look(self.asked, found);
        found.reversed(|found| look(self.late, found));
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
