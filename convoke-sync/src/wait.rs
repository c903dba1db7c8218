//! A waiter in a [`WaitQueue`]: the part of a future that is linked into a list, and unlinks itself.
//!
//! [`Wait`] owns the node of a future. A [`Waiter`] borrows a node for one call, from a `Wait` or from the
//! seat of a receiver, and has the operations of its owner.

#![allow(unsafe_code)]

use core::fmt;
use core::pin::Pin;
use core::task::{Context, Poll, Waker};

use super::wait_queue::{Locked, Node, OwnedNode, WaitQueue, WaitState};
use convoke_core::raw::{Pause, discard};

/// One waiter. It owns its node; the rules are those of the [`WaitQueue`].
pub(crate) struct Wait<'q, S, P, const LISTS: usize = 1> {
    queue: &'q WaitQueue<S, P, LISTS>,
    node: Node<P>,
}

// SAFETY: the queue is shared with other threads, and is `Sync` if `S` and `P` are `Send`. The payload moves
// with the future, or to the thread that grants. Rules 1 to 3 of the queue order all access to the node.
unsafe impl<S: Send, P: Send, const LISTS: usize> Send for Wait<'_, S, P, LISTS> {}
// SAFETY: a shared reference can only read the state of the node, which is an atomic, and its address.
unsafe impl<S: Send, P: Send, const LISTS: usize> Sync for Wait<'_, S, P, LISTS> {}

impl<'q, S, P, const LISTS: usize> Wait<'q, S, P, LISTS> {
    #[inline]
    pub(crate) fn new(queue: &'q WaitQueue<S, P, LISTS>) -> Self {
        Self { queue, node: Node::new() }
    }

    /// Returns the address of the node. It is only compared.
    pub(crate) fn address(&self) -> usize {
        core::ptr::from_ref(&self.node).addr()
    }

    #[inline]
    pub(crate) fn state(&self) -> WaitState {
        self.node.state()
    }

    /// Returns the operations of its owner.
    #[inline]
    pub(crate) fn waiter(self: Pin<&mut Self>) -> Waiter<'_, S, P, LISTS> {
        self.into_ref().get_ref().own_waiter()
    }

    /// Returns the waiter, for `waiter` and `drop`, which have `&mut Self`.
    #[inline]
    fn own_waiter(&self) -> Waiter<'_, S, P, LISTS> {
        // SAFETY: rule 3 of the queue: the node is pinned with us before it is queued, as `waiter` takes a
        // `Pin`, and `drop` unlinks it. A waiter uses it with the lock of `self.queue` only.
        Waiter { queue: self.queue, node: unsafe { OwnedNode::new(&self.node) } }
    }
}

/// The node of a waiter and its queue, as the owner of the node uses them.
pub(crate) struct Waiter<'w, S, P, const LISTS: usize> {
    queue: &'w WaitQueue<S, P, LISTS>,
    node: OwnedNode<'w, P>,
}

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

impl<'w, S, P, const LISTS: usize> Waiter<'w, S, P, LISTS> {
    /// Creates a waiter. `node` is used with the lock of `queue` and no other.
    #[inline]
    pub(super) fn new(queue: &'w WaitQueue<S, P, LISTS>, node: OwnedNode<'w, P>) -> Self {
        Self { queue, node }
    }

    #[inline]
    pub(crate) fn queue(&self) -> &'w WaitQueue<S, P, LISTS> {
        self.queue
    }

    #[inline]
    pub(crate) fn state(&self) -> WaitState {
        self.node.state()
    }

    /// Queues at the end of a list.
    ///
    /// # Panics
    /// If it is queued or granted already, or `locked` belongs to another queue.
    pub(crate) fn enqueue(
        &mut self,
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
        &mut self,
        locked: &mut Locked<'_, S, P, LISTS>,
        list: usize,
        payload: P,
        waker: Waker,
    ) {
        self.link(locked, list, true, payload, waker);
    }

    fn link(
        &mut self,
        locked: &mut Locked<'_, S, P, LISTS>,
        list: usize,
        first: bool,
        payload: P,
        waker: Waker,
    ) {
        assert!(locked.is_of(self.queue), "a waiter waits in its own queue");
        locked.link(list, first, &self.node, payload, waker);
    }

    /// Replaces the stored waker by the one of `cx`, if it is still queued. Returns the state afterwards.
    pub(crate) fn renew(&mut self, cx: &Context<'_>) -> WaitState {
        let mut spare = None;
        loop {
            let mut locked = self.queue.lock();
            let renewed = locked.renew(&self.node, cx.waker(), &mut spare);
            // The waker is user code: it is cloned and dropped without the lock.
            drop(locked);
            if renewed {
                return self.state();
            }
            spare = Some(cx.waker().clone());
        }
    }

    /// Polls a wait that may have begun. Pending while it is queued, with the waker of `cx`; else it is idle, and has to begin, or
    /// granted.
    #[inline]
    pub(crate) fn poll_granted(&mut self, pause: &mut Pause, cx: &Context<'_>) -> Poll<WaitState> {
        match self.state() {
            WaitState::Queued if self.renew(cx) == WaitState::Queued => {
                pause.wait(cx);
                Poll::Pending
            }
            // It was granted meanwhile: `renew` leaves no queued waiter idle.
            WaitState::Queued => Poll::Ready(WaitState::Granted),
            other => Poll::Ready(other),
        }
    }

    /// Takes the grant, if there is one, and becomes idle.
    #[inline]
    pub(crate) fn take_granted(&mut self) -> Option<P> {
        self.node.take_granted()
    }

    /// Leaves the list, or gives up the grant.
    #[inline]
    pub(crate) fn leave(&mut self) -> Left<P> {
        // No lock needed: only the owner queues the node.
        if self.state() == WaitState::Idle { Left::Idle } else { self.leave_now(|_| ()) }
    }

    /// Leaves the list, or gives up the grant. If it was queued, calls `after` under the lock.
    pub(crate) fn leave_now(&mut self, after: impl FnOnce(&mut Locked<'_, S, P, LISTS>)) -> Left<P> {
        let mut locked = self.queue.lock();
        let taken = locked.take_out(&self.node);
        if let Some((payload, waker)) = taken {
            after(&mut locked);
            drop(locked);
            // `discard` contains a panic of the waker: the caller may have to pass the lock or a grant
            // on.
            discard(waker);
            return Left::Queued(payload);
        }
        drop(locked);
        match self.node.take_granted() {
            Some(payload) => Left::Granted(payload),
            None => Left::Idle,
        }
    }
}

impl<S, P, const LISTS: usize> Drop for Wait<'_, S, P, LISTS> {
    #[inline]
    fn drop(&mut self) {
        if self.state() == WaitState::Queued {
            drop(self.own_waiter().leave_now(|_| ()));
        }
    }
}

impl<S, P, const LISTS: usize> fmt::Debug for Wait<'_, S, P, LISTS> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Wait").field(&self.state()).finish()
    }
}
