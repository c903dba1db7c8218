//! A child with a name. The name lies in the child, and is found by people who look for as long as the child's memory is
//! there: whoever has no name pays nothing for those who have.

#![allow(unsafe_code)]

use core::ptr::NonNull;
use std::sync::Arc;

use super::block::{Block, ChildEnd};
use super::child::Where;
use crate::registry::{Entry, Found};
use crate::task::{Known, ParentLink, TaskHeader};

/// Where a child hangs that has a name.
pub(super) struct Titled<W> {
    /// First: nobody looks at the rest when that is dropped.
    entry: Entry,
    title: Title,
    inner: W,
}

struct Title {
    name: Arc<str>,
    /// Itself, from `announce` on.
    child: Option<NonNull<TaskHeader>>,
}

impl<W> Titled<W> {
    pub(super) fn new(name: Arc<str>, inner: W) -> Self {
        Self { entry: Entry::new(), title: Title { name, child: None }, inner }
    }
}

impl Title {
    /// # Safety
    /// `title` is one, and there.
    unsafe fn look(title: NonNull<()>, found: &mut Found) {
        // SAFETY: the caller's; it is not changed any more.
        let Self { name, child } = unsafe { title.cast::<Self>().as_ref() };
        if let Some(child) = child {
            found.name(*child, name);
        }
    }
}

// SAFETY: the inner one says it.
unsafe impl<O, W: Where<O>> Where<O> for Titled<W> {
    #[inline]
    unsafe fn block(&self, child: NonNull<TaskHeader>) -> NonNull<Block<O>> {
        // SAFETY: the caller's.
        unsafe { self.inner.block(child) }
    }

    #[inline]
    unsafe fn tell_home(&self, child: NonNull<TaskHeader>) -> Known {
        // SAFETY: the caller's.
        unsafe { Where::<O>::tell_home(&self.inner, child) }
    }

    unsafe fn tell(&self, child: NonNull<TaskHeader>, end: ChildEnd<O>) -> Known {
        // SAFETY: the caller's.
        unsafe { self.inner.tell(child, end) }
    }

    unsafe fn settle(
        this: NonNull<Self>,
        child: NonNull<TaskHeader>,
        scope: NonNull<ParentLink>,
    ) -> NonNull<ParentLink> {
        // SAFETY: the caller's; a field has an address.
        unsafe { W::settle(NonNull::new_unchecked(&raw mut (*this.as_ptr()).inner), child, scope) }
    }

    unsafe fn announce(this: NonNull<Self>, child: NonNull<TaskHeader>) {
        // SAFETY: the caller's: the child does not run yet, and its ending is used by nobody else. It is dropped with the child's
        // memory, and the entry with it. No lock is held.
        unsafe {
            (*this.as_ptr()).title.child = Some(child);
            let title = NonNull::new_unchecked(&raw mut (*this.as_ptr()).title);
            (*this.as_ptr()).entry.link(title.cast(), Title::look);
        }
    }

    fn name(&self) -> Option<&str> {
        Some(&self.title.name)
    }
}
