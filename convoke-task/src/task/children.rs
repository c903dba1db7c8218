//! The lists of the children that a parent has: not asked to stop, asked to stop, and asked to stop from the
//! start. They are linked through the tasks, so that adding a child allocates nothing. Not `IntrusiveList`: that is a
//! ring, and adding a child would write to the oldest sibling, too, whose memory nothing else touches meanwhile. Rules:
//!
//! 1. A task in a list is alive, and has not told its parent that it leaves: what is added is posted or
//!    leaked, and a task that leaves is removed by its ending (`Left` is the proof).
//! 2. The links of a task in a list, and its `list`, belong to the one that has `&mut Children`: the holder of
//!    the parent's lock. This is rule 4 of the header.

#![allow(unsafe_code)]

use core::future::Future;
use core::mem::ManuallyDrop;
use core::ptr::{self, NonNull};

use super::ending::Ending;
use super::header::TaskHeader;
use super::new_task::{NewTask, Unposted};
use super::parent_link::{Links, List};
use super::reference::{InList, Known, Leaving, Left, ToAsk};

/// The three lists.
pub(crate) struct Children {
    running: *mut TaskHeader,
    asked: *mut TaskHeader,
    late: *mut TaskHeader,
}

// SAFETY: the pointers lead to tasks that are alive (rule 1), and are followed by the holder of the lock (rule
// 2).
unsafe impl Send for Children {}

/// A new task that is in a list. It is posted next; if this is dropped, the task is leaked and never leaves.
#[must_use = "a child that is in a list has to be posted"]
pub(crate) struct Added<F: Future, M>(ManuallyDrop<NewTask<F, M>>);

impl<F: Future, M: Ending<F::Output>> Added<F, M> {
    /// Returns the task.
    #[inline]
    pub(crate) fn task(&self) -> &NewTask<F, M> {
        &self.0
    }

    /// Returns the task, to be posted.
    #[inline]
    pub(crate) fn into_task(self) -> NewTask<F, M> {
        ManuallyDrop::into_inner(self.0)
    }
}

impl Children {
    pub(crate) const fn new() -> Self {
        Self { running: ptr::null_mut(), asked: ptr::null_mut(), late: ptr::null_mut() }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.running.is_null() && self.asked.is_null() && self.late.is_null()
    }

    /// Adds a child. If `asked`, it is asked to stop from the start.
    #[inline]
    pub(crate) fn add<F: Future, M: Ending<F::Output>>(
        &mut self,
        child: NewTask<F, M>,
        asked: bool,
    ) -> Added<F, M> {
        self.link_new(&child.untyped, asked);
        Added(ManuallyDrop::new(child))
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn link_new(&mut self, child: &Unposted, asked: bool) {
        if asked {
            child.ask_stop();
        }
        self.link(child.task(), if asked { List::Late } else { List::Running });
    }

    /// Removes a child that leaves. Returns true if it was the last.
    ///
    /// # Safety
    /// It was added to these lists.
    #[inline]
    pub(crate) unsafe fn remove(&mut self, child: Leaving<'_>) -> (bool, Left) {
        let (list, was_first) = self.unlink(child.task());
        let known = if list == List::Asked { Known::ToOthers } else { Known::ToTheParent };
        (was_first && self.is_empty(), Left(known))
    }

    /// Moves a child to the list of asked ones and returns it, if there is one that was not asked to stop.
    pub(crate) fn next_to_ask(&mut self) -> Option<ToAsk> {
        let child = NonNull::new(self.running)?;
        self.unlink(child);
        self.link(child, List::Asked);
        // SAFETY: rule 1: it is in a list, and `&mut self` keeps it there. It is that of the asked ones, and
        // `remove` says so when it leaves.
        Some(unsafe { InList::new(child).to_ask() })
    }

    /// Calls `visit` for each child, the oldest first: `reversed` calls its argument and reverses what that
    /// has visited.
    ///
    /// Each list has its newest child first, except for the asked ones: those were taken from the running
    /// ones, the newest first. So they are younger than the rest of the running ones, and in order.
    pub(crate) fn visit(&self, mut list: impl FnMut(&mut dyn Iterator<Item = InList<'_>>, Order)) {
        list(&mut Iter { next: self.running, _lists: self }, Order::NewestFirst);
        list(&mut Iter { next: self.asked, _lists: self }, Order::OldestFirst);
        list(&mut Iter { next: self.late, _lists: self }, Order::NewestFirst);
    }

    #[inline]
    fn head(&mut self, list: List) -> &mut *mut TaskHeader {
        match list {
            List::Running | List::Nowhere => &mut self.running,
            List::Asked => &mut self.asked,
            List::Late => &mut self.late,
        }
    }

    /// Puts a child, which is alive and in no list, at the front of a list.
    #[inline]
    fn link(&mut self, child: NonNull<TaskHeader>, list: List) {
        let head = self.head(list);
        // SAFETY: `add` and `next_to_ask` pass a child that is alive; its neighbour in the list is too (rule
        // 1). Rule 2: `&mut self`.
        unsafe {
            child.as_ref().links().write(Links { next: *head, previous: ptr::null_mut() });
            child.as_ref().list.set(list);
            if let Some(next) = NonNull::new(*head) {
                (*next.as_ref().links()).previous = child.as_ptr();
            }
        }
        *head = child.as_ptr();
    }

    /// Removes a child from its list, which is one of these. Returns the list, and true if the child was the first in
    /// it.
    #[inline]
    fn unlink(&mut self, child: NonNull<TaskHeader>) -> (List, bool) {
        // SAFETY: `remove` and `next_to_ask` pass a child that is in a list; it and its neighbours are alive:
        // rule 1. Rule 2: `&mut self`.
        unsafe {
            let (links, list) = (child.as_ref().links(), child.as_ref().list.get());
            let (next, previous) = ((*links).next, (*links).previous);
            if let Some(next) = NonNull::new(next) {
                (*next.as_ref().links()).previous = previous;
            }
            match NonNull::new(previous) {
                Some(previous) => {
                    (*previous.as_ref().links()).next = next;
                    (list, false)
                }
                // The child is the first of its list.
                None => {
                    *self.head(list) = next;
                    (list, true)
                }
            }
        }
    }
}

/// The order in which a list has its children.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    NewestFirst,
    OldestFirst,
}

/// The children of one list.
struct Iter<'a> {
    next: *mut TaskHeader,
    _lists: &'a Children,
}

impl<'a> Iterator for Iter<'a> {
    type Item = InList<'a>;

    fn next(&mut self) -> Option<InList<'a>> {
        let child = NonNull::new(self.next)?;
        // SAFETY: rule 1: it is in a list, and alive; the lists are borrowed, so that it stays there. Rule 2:
        // they are not changed meanwhile.
        unsafe {
            self.next = (*child.as_ref().links()).next;
            Some(InList::new(child))
        }
    }
}
