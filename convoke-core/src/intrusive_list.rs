//! A doubly linked list that is linked through its nodes: adding and removing are a few writes, and never
//! allocate. It is the list of stop callbacks and of waiters.
//!
//! Rules. Code that adds a node sees to the first three:
//! 1. A node is in at most one list at a time.
//! 2. While it is in a list it exists, does not move, and there are only shared references to it.
//! 3. A list, and the links of its nodes, are used by one thread at a time. Mostly the list lies under a lock.
//! 4. The links of a list form a ring: `next` of the last node is the first one, and `before` of the first
//!    one is the last. A node that was removed has no `next`.
//! 5. Links are written when the node is added for the first time, and not read before.

#![allow(unsafe_code)]

use core::cell::Cell;
use core::fmt;
use core::marker::PhantomPinned;
use core::mem::MaybeUninit;
use core::ptr::NonNull;

/// The links of a node, inside of it. Creating them writes nothing. They make the node `!Unpin`: a list points to
/// it, so neither a `&mut` nor a `Box` of it, moved or not, may claim to be the only way to it.
pub struct Links<N> {
    next: Cell<MaybeUninit<Option<NonNull<N>>>>,
    before: Cell<MaybeUninit<NonNull<N>>>,
    _pinned: PhantomPinned,
}

/// A node of an [`IntrusiveList`].
///
/// # Safety
/// `links` always returns the same field, which only the lists use.
pub unsafe trait Linked: Sized {
    /// Returns the links of the node.
    fn links(&self) -> &Links<Self>;
}

/// A list that is linked through its nodes. One word; dropping it leaves its nodes alone.
pub struct IntrusiveList<N> {
    first: Option<NonNull<N>>,
}

impl<N> Links<N> {
    /// Creates the links of a node that is in no list.
    #[inline]
    pub const fn new() -> Self {
        Self {
            next: Cell::new(MaybeUninit::uninit()),
            before: Cell::new(MaybeUninit::uninit()),
            _pinned: PhantomPinned,
        }
    }

    #[inline]
    fn next(&self) -> Option<NonNull<N>> {
        // SAFETY: rule 5: the node was added to a list, and `connect` has written the links.
        unsafe { self.next.get().assume_init() }
    }

    #[inline]
    fn before(&self) -> NonNull<N> {
        // SAFETY: rule 5: the node was added to a list, and `connect` has written the links.
        unsafe { self.before.get().assume_init() }
    }
}

impl<N: Linked> IntrusiveList<N> {
    /// Creates an empty list.
    pub const fn new() -> Self {
        Self { first: None }
    }

    /// Returns true if it is empty.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.first.is_none()
    }

    /// Returns the first node.
    #[inline]
    pub fn first(&self) -> Option<&N> {
        self.first.map(node)
    }

    /// Iterates over the nodes, from first to last.
    pub fn iter(&self) -> impl Iterator<Item = &N> {
        let mut next = self.first;
        core::iter::from_fn(move || {
            let current = next?;
            next = node(current).links().next().filter(|next| Some(*next) != self.first);
            Some(node(current))
        })
    }

    /// Adds a node at the end.
    ///
    /// # Safety
    /// Rules 1 to 3: the node is in no list. Until it is removed it exists and does not move, there are only
    /// shared references to it, and one thread at a time uses the list.
    #[inline]
    pub unsafe fn push_back(&mut self, added: NonNull<N>) {
        self.link(added);
    }

    /// Adds a node at the front.
    ///
    /// # Safety
    /// As for [`push_back`](IntrusiveList::push_back).
    #[inline]
    pub unsafe fn push_front(&mut self, added: NonNull<N>) {
        self.link(added);
        self.first = Some(added);
    }

    /// Links a node between the last one and the first one.
    #[inline]
    fn link(&mut self, added: NonNull<N>) {
        match self.first {
            None => {
                connect(added, added);
                self.first = Some(added);
            }
            Some(first) => {
                connect(node(first).links().before(), added);
                connect(added, first);
            }
        }
    }

    /// Removes the first node.
    #[inline]
    pub fn pop_front(&mut self) -> Option<NonNull<N>> {
        let first = self.first?;
        self.unlink(first);
        Some(first)
    }

    /// Removes a node. Returns false if it was removed before.
    ///
    /// # Safety
    /// The node was added to this list, and not to another one since. It exists.
    #[inline]
    pub unsafe fn remove(&mut self, removed: NonNull<N>) -> bool {
        let is_here = node(removed).links().next().is_some();
        if is_here {
            self.unlink(removed);
        }
        is_here
    }

    #[inline]
    fn unlink(&mut self, removed: NonNull<N>) {
        let links = node(removed).links();
        let next = links.next();
        links.next.set(MaybeUninit::new(None));
        match next {
            // It was the only one, so that there is nothing to connect.
            Some(next) if next == removed => self.first = None,
            Some(next) => {
                connect(links.before(), next);
                if self.first == Some(removed) {
                    self.first = Some(next);
                }
            }
            None => {}
        }
    }
}

/// Makes `next` the neighbour of `before`.
#[inline]
fn connect<N: Linked>(before: NonNull<N>, next: NonNull<N>) {
    node(before).links().next.set(MaybeUninit::new(Some(next)));
    node(next).links().before.set(MaybeUninit::new(before));
}

/// Borrows a node of a list, or one that is added or removed now. The list decides for how long.
#[inline]
fn node<'a, N>(node: NonNull<N>) -> &'a N {
    // SAFETY: rule 2: a node in a list exists, and there are only shared references to it. For one that is
    // added or removed, the functions that take it require the same.
    unsafe { node.as_ref() }
}

impl<N> Default for Links<N> {
    fn default() -> Self {
        Self::new()
    }
}

impl<N: Linked> Default for IntrusiveList<N> {
    fn default() -> Self {
        Self::new()
    }
}

impl<N> fmt::Debug for Links<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Links").finish_non_exhaustive()
    }
}

impl<N> fmt::Debug for IntrusiveList<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("IntrusiveList").field("empty", &self.first.is_none()).finish()
    }
}
