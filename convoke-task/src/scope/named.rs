//! Children with names. The name is in the child's memory, and a registry entry beside it lets diagnosis find
//! it while that memory is allocated. Children without a name cost nothing.

#![allow(unsafe_code)]

use core::cell::Cell;
use core::ptr::NonNull;
use std::sync::Arc;

use super::block::{ChildEnd, LeavingChild};
use super::child::Attach;
use crate::registry::{Entry, Found, Visit};
use crate::task::{Left, ParentLink, TaskId};

/// The connection of a named child to its scope.
pub(super) struct WithName<W> {
    /// The first field: it is unlinked before the name is dropped, so that no visitor sees a name half dropped.
    entry: Entry,
    tag: NameTag,
    inner: W,
}

/// The name, and the child that has it, for a visitor of the registry.
struct NameTag {
    name: Arc<str>,
    /// Set by `announce`, and not changed afterwards.
    child: Cell<Option<TaskId>>,
}

impl<W> WithName<W> {
    pub(super) fn new(name: Arc<str>, inner: W) -> Self {
        Self { entry: Entry::new(), tag: NameTag { name, child: Cell::new(None) }, inner }
    }
}

impl Visit for NameTag {
    fn visit(&self, found: &mut Found) {
        if let Some(child) = self.child.get() {
            found.name(child, &self.name);
        }
    }
}

// SAFETY: contract 1 is that of `inner`, which is a field.
unsafe impl<O, W: Attach<O>> Attach<O> for WithName<W> {
    #[inline]
    fn own_link(&self) -> Option<&ParentLink> {
        self.inner.own_link()
    }

    #[inline]
    fn finished(&self, child: LeavingChild<'_, O>) -> Left {
        self.inner.finished(child)
    }

    fn ended(&self, child: LeavingChild<'_, O>, end: ChildEnd<O>) -> Left {
        self.inner.ended(child, end)
    }

    fn announce(&self, child: TaskId) {
        self.tag.child.set(Some(child));
        // SAFETY: rule 2 of the registry: `self` is part of a child, and does not move. The entry and the tag
        // are dropped together, with the child's memory. The tag is not changed any more. Rule 3: `announce` is
        // called without a lock, once.
        unsafe { self.entry.link(NonNull::from(&self.tag)) };
    }

    fn name(&self) -> Option<&Arc<str>> {
        Some(&self.tag.name)
    }
}
