//! Children with names. The name is in the child's memory, and a registry entry beside it lets diagnosis find
//! it while that memory is allocated. Children without a name cost nothing.

#![allow(unsafe_code)]

use core::ptr::NonNull;
use std::sync::Arc;

use super::block::{Block, ChildEnd};
use super::child::Attach;
use crate::registry::{Entry, Found};
use crate::task::{Known, ParentLink, TaskHeader};

/// The connection of a named child to its scope.
pub(super) struct WithName<W> {
    /// The first field: it is unlinked before the name is dropped, so that no visitor sees a name half dropped.
    entry: Entry,
    tag: NameTag,
    inner: W,
}

/// What a visitor of the registry finds: the name, and the child that has it.
struct NameTag {
    name: Arc<str>,
    /// Set by `announce`, and not changed afterwards.
    child: Option<NonNull<TaskHeader>>,
}

impl<W> WithName<W> {
    pub(super) fn new(name: Arc<str>, inner: W) -> Self {
        Self { entry: Entry::new(), tag: NameTag { name, child: None }, inner }
    }
}

impl NameTag {
    /// Adds the name to what a visitor of the registry has found.
    ///
    /// # Safety
    /// `tag` points to a live `NameTag`.
    unsafe fn visit(tag: NonNull<()>, found: &mut Found) {
        // SAFETY: the caller says that it is alive; `announce` changed it for the last time before it linked
        // the entry.
        let Self { name, child } = unsafe { tag.cast::<Self>().as_ref() };
        if let Some(child) = child {
            found.name(*child, name);
        }
    }
}

// SAFETY: `inner` returns the block, and promises the same.
unsafe impl<O, W: Attach<O>> Attach<O> for WithName<W> {
    #[inline]
    unsafe fn block(&self, child: NonNull<TaskHeader>) -> NonNull<Block<O>> {
        // SAFETY: the caller guarantees what `block` asks for, and `inner` asks for the same.
        unsafe { self.inner.block(child) }
    }

    #[inline]
    unsafe fn finished(&self, child: NonNull<TaskHeader>) -> Known {
        // SAFETY: the caller guarantees what `finished` asks for, and `inner` asks for the same.
        unsafe { Attach::<O>::finished(&self.inner, child) }
    }

    unsafe fn ended(&self, child: NonNull<TaskHeader>, end: ChildEnd<O>) -> Known {
        // SAFETY: the caller guarantees what `ended` asks for, and `inner` asks for the same.
        unsafe { self.inner.ended(child, end) }
    }

    unsafe fn attach(
        this: NonNull<Self>,
        child: NonNull<TaskHeader>,
        scope: NonNull<ParentLink>,
    ) -> NonNull<ParentLink> {
        // SAFETY: the caller guarantees what `attach` asks for; `inner` is part of the child, as `this` is,
        // and its address is not null.
        unsafe { W::attach(NonNull::new_unchecked(&raw mut (*this.as_ptr()).inner), child, scope) }
    }

    unsafe fn announce(this: NonNull<Self>, child: NonNull<TaskHeader>) {
        // SAFETY: the child is not posted yet, so no other thread touches its ending. The entry and the tag
        // are dropped together, with the child's memory. The caller holds no lock.
        unsafe {
            (*this.as_ptr()).tag.child = Some(child);
            let tag = NonNull::new_unchecked(&raw mut (*this.as_ptr()).tag);
            (*this.as_ptr()).entry.link(tag.cast(), NameTag::visit);
        }
    }

    fn name(&self) -> Option<&str> {
        Some(&self.tag.name)
    }
}
