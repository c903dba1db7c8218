//! The children of a scope, in three lists: not asked to stop, asked to stop, and asked to stop from the
//! start. The lists are linked through the tasks, so that adding a child allocates nothing.
//!
//! Rule 1: a task in a list is alive. Rule 2: its links and its list are touched only under the lock of the
//! scope.

#![allow(unsafe_code)]

use core::ptr::{self, NonNull};

use crate::registry::Found;
use crate::task::{Known, List, TaskHeader};

/// The three lists, and the number of children in them.
pub(super) struct Children {
    running: *mut TaskHeader,
    asked: *mut TaskHeader,
    late: *mut TaskHeader,
    count: usize,
}

// SAFETY: the pointers lead to tasks that are alive (rule 1), and are followed under the scope's lock (rule 2).
unsafe impl Send for Children {}

impl Children {
    pub(super) const fn new() -> Self {
        Self { running: ptr::null_mut(), asked: ptr::null_mut(), late: ptr::null_mut(), count: 0 }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Adds a child. `asked`: it is asked to stop from the start.
    ///
    /// # Safety
    /// The child is in no list, and stays alive until it is removed.
    #[inline]
    pub(super) unsafe fn add(&mut self, child: NonNull<TaskHeader>, asked: bool) {
        self.count += 1;
        // SAFETY: the caller says that the child is in no list.
        unsafe { self.link(child, if asked { List::Late } else { List::Running }) };
    }

    /// Removes a child. Returns if it was the last, and if [`next_to_ask`](Children::next_to_ask) has
    /// returned it before.
    ///
    /// # Safety
    /// The child was added, and not removed.
    #[inline]
    pub(super) unsafe fn remove(&mut self, child: NonNull<TaskHeader>) -> (bool, Known) {
        self.count -= 1;
        // SAFETY: the caller says that the child is in a list; so it is alive, rule 1.
        let list = unsafe {
            self.unlink(child);
            child.as_ref().list.get()
        };
        (self.count == 0, if list == List::Asked { Known::ToOthers } else { Known::ToTheParent })
    }

    /// Moves a child to the list of asked ones and returns it, if there is one that was not asked to stop.
    pub(super) fn next_to_ask(&mut self) -> Option<NonNull<TaskHeader>> {
        let child = NonNull::new(self.running)?;
        // SAFETY: it is in the list `running`, and so alive: rule 1. After `unlink` it is in no list.
        unsafe {
            self.unlink(child);
            self.link(child, List::Asked);
        }
        Some(child)
    }

    /// Adds all children to what a visitor of the registry has found, the oldest first.
    ///
    /// Each list has its newest child first, except for the asked ones: those were taken from the running
    /// ones, the newest first. So they are younger than the rest of the running ones, and in order.
    pub(super) fn visit(&self, found: &mut Found, parent: Option<NonNull<TaskHeader>>) {
        let visit = |head: *mut TaskHeader, found: &mut Found| {
            let mut next = head;
            while let Some(child) = NonNull::new(next) {
                // SAFETY: it is in a list, and so alive: rule 1. The caller holds the scope's lock: rule 2.
                unsafe {
                    found.task(child.as_ref(), parent);
                    next = (*child.as_ref().links()).next;
                }
            }
        };
        found.reversed(|found| visit(self.running, found));
        visit(self.asked, found);
        found.reversed(|found| visit(self.late, found));
    }

    #[inline]
    fn head(&mut self, list: List) -> &mut *mut TaskHeader {
        match list {
            List::Running => &mut self.running,
            List::Asked => &mut self.asked,
            List::Late => &mut self.late,
        }
    }

    /// Puts a child at the front of a list.
    ///
    /// # Safety
    /// The child is alive, and in no list.
    #[inline]
    unsafe fn link(&mut self, child: NonNull<TaskHeader>, list: List) {
        let head = self.head(list);
        // SAFETY: the caller says that the child is alive; its neighbour in the list is too, rule 1. `&mut
        // self` comes from the scope's lock: rule 2.
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

    /// Takes a child out of its list.
    ///
    /// # Safety
    /// The child is in a list.
    #[inline]
    unsafe fn unlink(&mut self, child: NonNull<TaskHeader>) {
        // SAFETY: the child and its neighbours are in the list, and so alive: rule 1. `&mut self` comes from
        // the scope's lock: rule 2.
        unsafe {
            let links = child.as_ref().links();
            let (next, previous) = ((*links).next, (*links).previous);
            match NonNull::new(previous) {
                Some(previous) => (*previous.as_ref().links()).next = next,
                // The child is the first of its list.
                None => *self.head(child.as_ref().list.get()) = next,
            }
            if let Some(next) = NonNull::new(next) {
                (*next.as_ref().links()).previous = previous;
            }
        }
    }
}
