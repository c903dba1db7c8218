//! The children of a scope, in three lists: those that were not asked to stop, those that were, and those that were asked
//! from the beginning. Linked through the tasks: adding one allocates nothing. The scope's lock guards them.

#![allow(unsafe_code)]

use core::ptr::{self, NonNull};

use crate::registry::Found;
use crate::task::{Known, List, TaskHeader};

/// The lists.
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
    /// The child is in no list and does not leave before it was removed.
    #[inline]
    pub(super) unsafe fn add(&mut self, child: NonNull<TaskHeader>, asked: bool) {
        self.count += 1;
        // SAFETY: the caller's.
        unsafe { self.link(child, if asked { List::Late } else { List::Running }) };
    }

    /// Removes a child. Says whether it was the last, and whether [`next_to_ask`](Children::next_to_ask) has given it out.
    ///
    /// # Safety
    /// It was added and not removed.
    #[inline]
    pub(super) unsafe fn remove(&mut self, child: NonNull<TaskHeader>) -> (bool, Known) {
        self.count -= 1;
        // SAFETY: the caller's.
        let list = unsafe {
            self.unlink(child);
            child.as_ref().list.get()
        };
        (self.count == 0, if list == List::Asked { Known::ToOthers } else { Known::ToTheParent })
    }

    /// Takes a child that is to be asked to stop, if there is one left.
    pub(super) fn next_to_ask(&mut self) -> Option<NonNull<TaskHeader>> {
        let child = NonNull::new(self.running)?;
        // SAFETY: it is in the list, and has not left.
        unsafe {
            self.unlink(child);
            self.link(child, List::Asked);
        }
        Some(child)
    }

    /// Tells of all of them, the oldest first. Each list has its newest first, except that of those who were asked: they were
    /// taken from the others one by one, the newest first, so that they are younger than the rest, and in order.
    pub(super) fn look(&self, found: &mut Found, above: Option<NonNull<TaskHeader>>) {
        let look = |head: *mut TaskHeader, found: &mut Found| {
            let mut next = head;
            while let Some(child) = NonNull::new(next) {
                // SAFETY: it is in the list, and has not left; the scope's lock is held.
                unsafe {
                    found.task(child.as_ref(), above);
                    next = (*child.as_ref().links()).next;
                }
            }
        };
        found.reversed(|found| look(self.running, found));
        look(self.asked, found);
        found.reversed(|found| look(self.late, found));
    }

    #[inline]
    fn head(&mut self, list: List) -> &mut *mut TaskHeader {
        match list {
            List::Running => &mut self.running,
            List::Asked => &mut self.asked,
            List::Late => &mut self.late,
        }
    }

    /// # Safety
    /// The child is in no list.
    #[inline]
    unsafe fn link(&mut self, child: NonNull<TaskHeader>, list: List) {
        let head = self.head(list);
        // SAFETY: the caller's; whoever is in the list has not left.
        unsafe {
            let links = child.as_ref().links();
            (*links).next = *head;
            (*links).previous = ptr::null_mut();
            child.as_ref().list.set(list);
            if let Some(next) = NonNull::new(*head) {
                (*next.as_ref().links()).previous = child.as_ptr();
            }
        }
        *head = child.as_ptr();
    }

    /// # Safety
    /// The child is in a list.
    #[inline]
    unsafe fn unlink(&mut self, child: NonNull<TaskHeader>) {
        // SAFETY: the caller's; whoever is in the list has not left.
        unsafe {
            let links = child.as_ref().links();
            let (next, previous) = ((*links).next, (*links).previous);
            match NonNull::new(previous) {
                Some(previous) => (*previous.as_ref().links()).next = next,
                // It is the first of its list.
                None => *self.head(child.as_ref().list.get()) = next,
            }
            if let Some(next) = NonNull::new(next) {
                (*next.as_ref().links()).previous = previous;
            }
        }
    }
}
