//! The children of a scope, in two lists: those that were asked to stop, and those that were not. Linked through the tasks:
//! adding one allocates nothing. The scope's lock guards them.

use core::ptr::{self, NonNull};

use crate::task::{Known, TaskHeader};

/// The lists.
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
    /// The child is in no list and does not leave before it was removed.
    #[inline]
    pub(super) unsafe fn add(&mut self, child: NonNull<TaskHeader>, asked: bool) {
        self.count += 1;
        // SAFETY: the caller's.
        unsafe { self.link(child, asked) };
    }

    /// Removes a child. Says whether it was the last, and whether [`next_to_ask`](Children::next_to_ask) has given it out.
    ///
    /// # Safety
    /// It was added and not removed.
    #[inline]
    pub(super) unsafe fn remove(&mut self, child: NonNull<TaskHeader>) -> (bool, Known) {
        self.count -= 1;
        // SAFETY: the caller's.
        let known = unsafe {
            self.unlink(child);
            (*child.as_ref().links.get()).known
        };
        (self.count == 0, known)
    }

    /// Takes a child that is to be asked to stop, if there is one left.
    pub(super) fn next_to_ask(&mut self) -> Option<NonNull<TaskHeader>> {
        let child = NonNull::new(self.running)?;
        // SAFETY: it is in the list, and has not left.
        unsafe {
            self.unlink(child);
            self.link(child, true);
            (*child.as_ref().links.get()).known = Known::ToOthers;
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

    /// # Safety
    /// The child is in no list.
    #[inline]
    unsafe fn link(&mut self, child: NonNull<TaskHeader>, asked: bool) {
        let head = if asked { &mut self.asked } else { &mut self.running };
        // SAFETY: the caller's; whoever is in the list has not left.
        unsafe {
            let links = child.as_ref().links.get();
            (*links).next = *head;
            (*links).previous = ptr::null_mut();
            (*links).asked = asked;
            if let Some(next) = NonNull::new(*head) {
                (*next.as_ref().links.get()).previous = child.as_ptr();
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
            let links = child.as_ref().links.get();
            let (next, previous) = ((*links).next, (*links).previous);
            match NonNull::new(previous) {
                Some(previous) => (*previous.as_ref().links.get()).next = next,
                // It is the first of its list.
                None if (*links).asked => self.asked = next,
                None => self.running = next,
            }
            if let Some(next) = NonNull::new(next) {
                (*next.as_ref().links.get()).previous = previous;
            }
        }
    }
}
