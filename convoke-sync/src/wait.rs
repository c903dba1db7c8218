//! A waiter in a [`WaitQueue`]: the part of a future that is linked into a list, and unlinks itself.

#![allow(unsafe_code)]

use core::fmt;
use core::marker::PhantomPinned;
use core::pin::Pin;
use core::task::{Context, Waker};

use super::wait_queue::{Locked, Node, OwnedNode, WaitQueue, WaitState};
use convoke_core::raw::discard;

/// One waiter. It owns its node; the rules are those of the [`WaitQueue`].
pub(crate) struct Wait<'q, S, P, const LISTS: usize = 1> {
    queue: &'q WaitQueue<S, P, LISTS>,
    node: Node<P>,
    _pinned: PhantomPinned,
}

// SAFETY: the queue is shared with other threads, and is `Sync` if `S` and `P` are `Send`. The payload moves
// with the future, or to the thread that grants. Rules 1 to 3 of the queue order all access to the node.
unsafe impl<S: Send, P: Send, const LISTS: usize> Send for Wait<'_, S, P, LISTS> {}
// SAFETY: a shared reference can only read the state of the node, which is an atomic, and its address.
unsafe impl<S: Send, P: Send, const LISTS: usize> Sync for Wait<'_, S, P, LISTS> {}

/// The state in which a waiter left the queue.
#[derive(Debug)]
pub(crate) enum Left<P> {
    /// In no list.
    Idle,
    /// Queued, with this payload.
    Queued(P),
    /// Granted, with this payload. The caller must pass the grant on.
    Granted(P),
}

impl<'q, S, P, const LISTS: usize> Wait<'q, S, P, LISTS> {
    #[inline]
    pub(crate) fn new(queue: &'q WaitQueue<S, P, LISTS>) -> Self {
        Self { queue, node: Node::new(), _pinned: PhantomPinned }
    }

    /// Returns the address of the node. It is only compared.
    pub(crate) fn address(&self) -> usize {
        core::ptr::from_ref(&self.node).addr()
    }

    #[inline]
    pub(crate) fn state(&self) -> WaitState {
        self.node.state()
    }

    /// Returns the node, for the functions here that its owner calls: they have `Pin<&mut Self>`, or are
    /// `drop`.
    #[inline]
    fn own_node(&self) -> OwnedNode<'_, P> {
        // SAFETY: rule 3 of the queue: the node is pinned with us before `link` queues it, and `drop` unlinks
        // it. It is used with the lock of `self.queue` only: `link` asserts it, the others take that lock.
        unsafe { OwnedNode::new(&self.node) }
    }

    /// Queues at the end of a list.
    ///
    /// # Panics
    /// If it is queued or granted already, or `locked` belongs to another queue.
    pub(crate) fn enqueue(
        self: Pin<&mut Self>,
        locked: &mut Locked<'_, S, P, LISTS>,
        list: usize,
        payload: P,
        waker: Waker,
    ) {
        self.link(locked, list, false, payload, waker);
    }

    /// Queues at the front of a list: for a waiter that was the first before.
    ///
    /// # Panics
    /// If it is queued or granted already, or `locked` belongs to another queue.
    pub(crate) fn enqueue_first(
        self: Pin<&mut Self>,
        locked: &mut Locked<'_, S, P, LISTS>,
        list: usize,
        payload: P,
        waker: Waker,
    ) {
        self.link(locked, list, true, payload, waker);
    }

    fn link(
        self: Pin<&mut Self>,
        locked: &mut Locked<'_, S, P, LISTS>,
        list: usize,
        first: bool,
        payload: P,
        waker: Waker,
    ) {
        assert!(locked.is_of(self.queue), "a waiter waits in its own queue");
        locked.link(list, first, self.own_node(), payload, waker);
    }

    /// Replaces the stored waker by the one of `cx`, if it is still queued. Returns the state afterwards.
    pub(crate) fn renew(self: Pin<&mut Self>, cx: &Context<'_>) -> WaitState {
        let mut spare = None;
        loop {
            let mut locked = self.queue.lock();
            let renewed = locked.renew(self.own_node(), cx.waker(), &mut spare);
            // The waker is user code: it is cloned and dropped without the lock.
            drop(locked);
            if renewed {
                return self.state();
            }
            spare = Some(cx.waker().clone());
        }
    }

    /// Takes the grant, if there is one, and becomes idle.
    #[inline]
    pub(crate) fn take_granted(self: Pin<&mut Self>) -> Option<P> {
        self.own_node().take_granted()
    }

    /// Leaves the list, or gives up the grant.
    #[inline]
    pub(crate) fn leave(self: Pin<&mut Self>) -> Left<P> {
        // No lock needed: only the owner queues the node.
        if self.state() == WaitState::Idle { Left::Idle } else { self.leave_queue(|_| ()) }
    }

    /// Leaves the list, or gives up the grant. If it was queued, calls `after` under the lock.
    pub(crate) fn leave_now(
        self: Pin<&mut Self>,
        after: impl FnOnce(&mut Locked<'_, S, P, LISTS>),
    ) -> Left<P> {
        self.leave_queue(after)
    }

    fn leave_queue(&self, after: impl FnOnce(&mut Locked<'_, S, P, LISTS>)) -> Left<P> {
        let mut locked = self.queue.lock();
        let taken = locked.take_out(self.own_node());
        if let Some((payload, waker)) = taken {
            after(&mut locked);
            drop(locked);
            // `discard` contains a panic of the waker: the caller may have to pass the lock or a grant
            // on.
            discard(waker);
            return Left::Queued(payload);
        }
        drop(locked);
        match self.own_node().take_granted() {
            Some(payload) => Left::Granted(payload),
            None => Left::Idle,
        }
    }
}

impl<S, P, const LISTS: usize> Drop for Wait<'_, S, P, LISTS> {
    #[inline]
    fn drop(&mut self) {
        if self.state() == WaitState::Queued {
            drop(self.leave_queue(|_| ()));
        }
    }
}

impl<S, P, const LISTS: usize> fmt::Debug for Wait<'_, S, P, LISTS> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Wait").field(&self.state()).finish()
    }
}
