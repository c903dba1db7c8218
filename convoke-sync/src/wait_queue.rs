//! A state under a short lock, with lists of waiters that are linked through their futures. Waiting does not
//! allocate, and a waiter that is dropped is unlinked at once.
//!
//! A waiter has a [`Node`] in its future, which is *idle*, *queued* or *granted*. A thread that changes the
//! state grants: it unlinks the first node of a list, changes its payload, and calls its waker after it has
//! released the lock.
//!
//! 1. The contents of a node belong to its owner while it is idle or granted, and to the holder of the lock
//!    while it is queued.
//! 2. Only the owner queues a node, under the lock, and only the owner makes a queued node idle, under the
//!    lock. The holder of the lock grants a queued node, and does not touch it afterwards. The owner makes a
//!    granted node idle without the lock.
//! 3. A queued node is in a list of its queue, and of no other. It is pinned, and its owner unlinks it before
//!    it is dropped. An [`OwnedNode`] is the proof that its holder is the owner, and keeps this rule.

#![allow(unsafe_code)]

use core::fmt;
use core::mem::MaybeUninit;
use core::panic::{RefUnwindSafe, UnwindSafe};
use core::ptr::NonNull;
use core::task::Waker;

use convoke_core::raw::sync::UnsafeCell;
use convoke_core::raw::sync::atomic::{AtomicU8, Ordering};
use convoke_core::raw::sync::const_outside_models;

use convoke_core::raw::{IntrusiveList, Linked, Links, SpinGuard, SpinLock, wake};

/// A state `S` and `LISTS` lists of waiters, under one lock. Each waiter carries a payload `P`.
pub(crate) struct WaitQueue<S, P, const LISTS: usize = 1> {
    inner: SpinLock<Inner<S, P, LISTS>>,
}

struct Inner<S, P, const LISTS: usize> {
    state: S,
    lists: [List<P>; LISTS],
}

// SAFETY: rule 1: the nodes in the lists are touched only under the lock. The state and the payloads are
// `Send`.
unsafe impl<S: Send, P: Send, const LISTS: usize> Send for Inner<S, P, LISTS> {}

// No user code runs under the lock, so no panic can leave the state half changed.
impl<S, P, const LISTS: usize> UnwindSafe for WaitQueue<S, P, LISTS> {}
impl<S, P, const LISTS: usize> RefUnwindSafe for WaitQueue<S, P, LISTS> {}

struct List<P> {
    nodes: IntrusiveList<Node<P>>,
    length: usize,
}

/// The node of one waiter.
pub(super) struct Node<P> {
    links: Links<Self>,
    state: AtomicU8,
    /// Written when the node is queued, so that a call which does not wait does not pay for it. In a granted
    /// node only the payload is still initialised.
    inside: UnsafeCell<MaybeUninit<Inside<P>>>,
}

// SAFETY: `links` is a field that only the lists use.
unsafe impl<P> Linked for Node<P> {
    #[inline]
    fn links(&self) -> &Links<Self> {
        &self.links
    }
}

struct Inside<P> {
    waker: Waker,
    payload: P,
    list: usize,
}

const IDLE: u8 = 0;
const QUEUED: u8 = 1;
const GRANTED: u8 = 2;

/// The state of a waiter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WaitState {
    /// In no list.
    Idle,
    /// In a list.
    Queued,
    /// Unlinked by another thread, which may have changed the payload.
    Granted,
}

/// Guard of the lock.
pub(crate) struct Locked<'q, S, P, const LISTS: usize> {
    queue: &'q WaitQueue<S, P, LISTS>,
    inner: SpinGuard<'q, Inner<S, P, LISTS>>,
}

impl<S, P, const LISTS: usize> WaitQueue<S, P, LISTS> {
    const_outside_models! {
        pub(crate) fn new(state: S) -> Self {
            let lists = [const { List { nodes: IntrusiveList::new(), length: 0 } }; LISTS];
            Self { inner: SpinLock::new(Inner { state, lists }) }
        }
    }

    #[inline]
    pub(crate) fn lock(&self) -> Locked<'_, S, P, LISTS> {
        Locked { queue: self, inner: self.inner.lock() }
    }

    /// Grants and wakes all waiters that are in this list now.
    pub(crate) fn grant_all(&self, list: usize) {
        let mut left = self.lock().inner.lists[list].length;
        // No more than were there at first: a woken waiter may queue again meanwhile. A waiter that is
        // granted out of turn checks again and re-queues.
        while left > 0
            && let Some(((), waker)) = { self.lock().grant(list, |_| ()) }
        {
            left -= 1;
            wake(waker);
        }
    }
}

impl<'q, S, P, const LISTS: usize> Locked<'q, S, P, LISTS> {
    #[inline]
    pub(crate) fn state(&mut self) -> &mut S {
        &mut self.inner.state
    }

    pub(super) fn is_of(&self, queue: &WaitQueue<S, P, LISTS>) -> bool {
        core::ptr::eq(self.queue, queue)
    }

    /// Returns the payload of the first waiter in this list.
    #[inline]
    pub(crate) fn first(&self, list: usize) -> Option<&P> {
        let first = self.inner.lists[list].nodes.first()?;
        // SAFETY: rule 1: the node is queued, so it is initialised, and we hold the lock.
        unsafe { first.inside.with(|inside| Some(&(*inside).assume_init_ref().payload)) }
    }

    /// Returns the address of the first node in this list. It is only compared.
    pub(crate) fn first_address(&self, list: usize) -> Option<usize> {
        self.inner.lists[list].nodes.first().map(|node| core::ptr::from_ref(node).addr())
    }

    #[inline]
    pub(crate) fn is_empty(&self, list: usize) -> bool {
        self.inner.lists[list].nodes.is_empty()
    }

    /// Unlinks the first waiter of this list, lets `give` change its payload, and grants it. The caller must
    /// call the returned waker after it has released the lock. `give` runs under the lock, so it must not run
    /// user code.
    #[inline]
    pub(crate) fn grant<R>(&mut self, list: usize, give: impl FnOnce(&mut P) -> R) -> Option<(R, Waker)> {
        let node = self.inner.lists[list].nodes.pop_front()?;
        self.inner.lists[list].length -= 1;
        // SAFETY: rule 1: the node is still queued, and we hold the lock. Rule 3: a queued node exists. The
        // waker is read once: a granted node has none. The store of the state is the last access to the node,
        // as rule 2 demands.
        unsafe {
            let granted = node.as_ref().inside.with_mut(|inside| {
                let inside = (*inside).as_mut_ptr();
                let given = give(&mut (*inside).payload);
                (given, (&raw const (*inside).waker).read())
            });
            node.as_ref().state.store(GRANTED, Ordering::Release);
            Some(granted)
        }
    }

    /// Queues a node, at the front of the list if `first` is true, else at its end.
    ///
    /// # Panics
    /// If the node is queued or granted.
    pub(super) fn link(
        &mut self,
        list: usize,
        first: bool,
        &OwnedNode(node): &OwnedNode<'_, P>,
        payload: P,
        waker: Waker,
    ) {
        assert!(node.state() == WaitState::Idle, "a waiter can be in one list");
        let List { nodes, length } = &mut self.inner.lists[list];
        // SAFETY: rule 1: the node is idle, and an `OwnedNode` is used by its owner. Rule 3: it is in no list,
        // and stays in place until its owner has unlinked it.
        unsafe {
            node.inside.with_mut(|inside| {
                (*inside).write(Inside { waker, payload, list });
            });
            match first {
                true => nodes.push_front(NonNull::from(node)),
                false => nodes.push_back(NonNull::from(node)),
            }
        }
        *length += 1;
        // Relaxed suffices: other threads read it under the lock.
        node.state.store(QUEUED, Ordering::Relaxed);
    }

    /// Unlinks the node if it is still queued. Returns its payload, and its waker, which the caller must drop
    /// after it has released the lock.
    pub(super) fn take_out(&mut self, &OwnedNode(node): &OwnedNode<'_, P>) -> Option<(P, Waker)> {
        if node.state.load(Ordering::Relaxed) != QUEUED {
            return None;
        }
        // SAFETY: rule 2: a node that is queued now stays queued while we hold the lock. Rule 1: so it is
        // ours, and rule 3: in a list of this queue. Its contents are moved out once: afterwards the node is
        // idle, and they count as uninitialised.
        let inside = unsafe {
            let inside = node.inside.with_mut(|inside| (*inside).assume_init_read());
            self.inner.lists[inside.list].nodes.remove(NonNull::from(node));
            inside
        };
        self.inner.lists[inside.list].length -= 1;
        node.state.store(IDLE, Ordering::Relaxed);
        Some((inside.payload, inside.waker))
    }

    /// Replaces the waker of a queued node, unless it already wakes the same task. Takes the new waker from
    /// `spare` and leaves the old one there; the caller must drop it after it has released the lock. Returns
    /// false if a waker is needed and `spare` is empty.
    pub(super) fn renew(
        &mut self,
        &OwnedNode(node): &OwnedNode<'_, P>,
        waker: &Waker,
        spare: &mut Option<Waker>,
    ) -> bool {
        if node.state.load(Ordering::Relaxed) != QUEUED {
            return true;
        }
        node.inside.with_mut(|inside| {
            // SAFETY: rule 2: a node that is queued now stays queued while we hold the lock. Rule 1: so its
            // contents are initialised, and ours.
            let before = unsafe { &mut (*inside).assume_init_mut().waker };
            if before.will_wake(waker) {
                return true;
            }
            let Some(spare) = spare else { return false };
            core::mem::swap(before, spare);
            true
        })
    }
}

/// A node, as its owner uses it.
pub(super) struct OwnedNode<'n, P>(&'n Node<P>);

impl<'n, P> OwnedNode<'n, P> {
    /// Creates the proof that the caller owns the node.
    ///
    /// # Safety
    /// Rule 3: the node is pinned, and its owner unlinks it before it is dropped. The result is used by the
    /// owner alone, and with the lock of one queue only.
    #[inline]
    pub(super) unsafe fn new(node: &'n Node<P>) -> Self {
        Self(node)
    }

    #[inline]
    pub(super) fn state(&self) -> WaitState {
        self.0.state()
    }

    /// Takes the payload if the node is granted. It is idle then.
    #[inline]
    pub(super) fn take_granted(&self) -> Option<P> {
        if self.0.state() != WaitState::Granted {
            return None;
        }
        self.0.state.store(IDLE, Ordering::Relaxed);
        // SAFETY: rule 1: the node was granted, and we are its owner. The payload is read once: the node is
        // idle from now on.
        Some(unsafe { self.0.inside.with(|inside| (&raw const (*(*inside).as_ptr()).payload).read()) })
    }
}

impl<P> Node<P> {
    #[inline]
    pub(super) fn new() -> Self {
        Self {
            links: Links::new(),
            state: AtomicU8::new(IDLE),
            inside: UnsafeCell::new(MaybeUninit::uninit()),
        }
    }

    #[inline]
    pub(super) fn state(&self) -> WaitState {
        match self.state.load(Ordering::Acquire) {
            IDLE => WaitState::Idle,
            QUEUED => WaitState::Queued,
            _ => WaitState::Granted,
        }
    }
}

impl<P> Drop for Node<P> {
    #[inline]
    fn drop(&mut self) {
        // `&mut self` proves that this is its owner.
        drop(OwnedNode(self).take_granted());
    }
}

impl<S: fmt::Debug, P, const LISTS: usize> fmt::Debug for WaitQueue<S, P, LISTS> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WaitQueue").finish_non_exhaustive()
    }
}
