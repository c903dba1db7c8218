//! One who waits in a [`WaitQueue`]: the part of a future that is linked into its lists, and takes itself out.

#![allow(unsafe_code)]

use core::fmt;
use core::marker::PhantomPinned;
use core::pin::Pin;
use core::ptr::NonNull;
use core::task::{Context, Waker};

use super::wait_queue::{Locked, Node, Standing, WaitQueue};
use convoke_core::raw::discard;

/// See the head of this file.
pub(crate) struct Wait<'q, S, P, const LISTS: usize = 1> {
    queue: &'q WaitQueue<S, P, LISTS>,
    node: Node<P>,
    _pinned: PhantomPinned,
}

// SAFETY: the queue is shared by threads, so it must be `Sync`; what the node carries goes with it, or to who grants.
// The node itself is used by rules 1 to 3 of the queue.
unsafe impl<S: Send, P: Send, const LISTS: usize> Send for Wait<'_, S, P, LISTS> {}
// SAFETY: by shared reference its standing can be read, which is an atomic.
unsafe impl<S: Send, P: Send, const LISTS: usize> Sync for Wait<'_, S, P, LISTS> {}

/// How one was found who leaves.
#[derive(Debug)]
pub(crate) enum Left<P> {
    /// In no list.
    Out,
    /// In a list, carrying this.
    Queued(P),
    /// Granted this: it was meant for somebody who is there.
    Granted(P),
}

impl<'q, S, P, const LISTS: usize> Wait<'q, S, P, LISTS> {
    #[inline]
    pub(crate) fn new(queue: &'q WaitQueue<S, P, LISTS>) -> Self {
        Self { queue, node: Node::new(), _pinned: PhantomPinned }
    }

    /// Where its node is, to be compared.
    pub(crate) fn address(&self) -> usize {
        core::ptr::from_ref(&self.node).addr()
    }

    #[inline]
    pub(crate) fn standing(&self) -> Standing {
        self.node.standing()
    }

    /// Goes to the end of a list, with this to carry.
    ///
    /// # Panics
    /// If it is not out, or the lock is another queue's.
    pub(crate) fn enqueue(
        self: Pin<&mut Self>,
        locked: &mut Locked<'_, S, P, LISTS>,
        list: usize,
        payload: P,
        waker: Waker,
    ) {
        self.link(locked, list, false, payload, waker);
    }

    /// The same, at the front: for one who was first already.
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
        assert!(locked.is_of(self.queue) && self.standing() == Standing::Out, "one who waits waits once");
        // SAFETY: we own the node; it is pinned with us, and taken out when we are dropped. It is out.
        unsafe { locked.link(list, first, NonNull::from(&self.node), payload, waker) };
    }

    /// Is still queued, but perhaps polled with another waker. Where it is now.
    pub(crate) fn renew(self: Pin<&mut Self>, cx: &Context<'_>) -> Standing {
        let mut spare = None;
        loop {
            let mut locked = self.queue.lock();
            // SAFETY: we own the node, and it was queued here if anywhere.
            let renewed = unsafe { locked.renew(NonNull::from(&self.node), cx.waker(), &mut spare) };
            // Foreign code, a waker's, runs without the lock.
            drop(locked);
            if renewed {
                return self.standing();
            }
            spare = Some(cx.waker().clone());
        }
    }

    /// What it was granted, if so. It is out then.
    #[inline]
    pub(crate) fn take_granted(self: Pin<&mut Self>) -> Option<P> {
        // SAFETY: it is granted, and ours.
        (self.standing() == Standing::Granted).then(|| unsafe { self.node.take_granted() })
    }

    /// Takes itself out of whatever list, or of what it was granted.
    #[inline]
    pub(crate) fn leave(self: Pin<&mut Self>) -> Left<P> {
        // Nobody but its owner makes it queued.
        if self.standing() == Standing::Out { Left::Out } else { self.leave_now(|_| ()) }
    }

    /// The same; `after` is called under the lock if it was queued.
    pub(crate) fn leave_now(
        self: Pin<&mut Self>,
        after: impl FnOnce(&mut Locked<'_, S, P, LISTS>),
    ) -> Left<P> {
        let mut locked = self.queue.lock();
        // SAFETY: we own the node, and it was queued here if anywhere.
        let taken = unsafe { locked.take_out(NonNull::from(&self.node)) };
        if let Some((payload, waker)) = taken {
            after(&mut locked);
            drop(locked);
            // Contained: whoever leaves has others to tell of it.
            discard(waker);
            return Left::Queued(payload);
        }
        drop(locked);
        match self.take_granted() {
            Some(payload) => Left::Granted(payload),
            None => Left::Out,
        }
    }
}

impl<S, P, const LISTS: usize> Drop for Wait<'_, S, P, LISTS> {
    #[inline]
    fn drop(&mut self) {
        if self.standing() == Standing::Queued {
            // SAFETY: it was pinned when it was queued, and is not moved any more.
            drop(unsafe { Pin::new_unchecked(self) }.leave_now(|_| ()));
        }
    }
}

impl<S, P, const LISTS: usize> fmt::Debug for Wait<'_, S, P, LISTS> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Wait").field(&self.standing()).finish()
    }
}
