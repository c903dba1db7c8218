//! A receiver that can be polled directly, as a stream. It moves between polls, so the node with which it
//! waits lies in a box of its own, which the first poll allocates.

#![allow(unsafe_code)]

use core::fmt;
use core::ops::Deref;
use core::panic::{RefUnwindSafe, UnwindSafe};
use core::pin::Pin;
use std::sync::Arc;

use super::wait::Waiter;
use super::wait_queue::{Node, OwnedNode, WaitQueue, WaitState};
use convoke_core::raw::Pause;

/// The shared part of a channel, with the queue in which its receivers wait.
///
/// # Safety
/// `wait_queue` always returns the same field.
pub(crate) unsafe trait HasWaitQueue<const LISTS: usize> {
    type State;
    type Payload;

    fn wait_queue(&self) -> &WaitQueue<Self::State, Self::Payload, LISTS>;
}

// SAFETY: `wait_queue` below returns `self`, the same queue each time.
unsafe impl<S, P, const LISTS: usize> HasWaitQueue<LISTS> for WaitQueue<S, P, LISTS> {
    type State = S;
    type Payload = P;

    fn wait_queue(&self) -> &Self {
        self
    }
}

/// A count of the shared part of a channel, and a node with which its owner waits there between polls.
///
/// A node that stays queued when its owner is not polled any more must not hold up others. So it is queued in
/// a list whose waiters are all granted together, and a grant is never passed on.
pub(crate) struct Seat<X: HasWaitQueue<LISTS>, const LISTS: usize> {
    shared: Arc<X>,
    node: Option<Pin<Box<Node<X::Payload>>>>,
    pause: Pause,
}

// SAFETY: the channel is shared with other threads, and is `Sync` if `X` is. Rules 1 to 3 of the queue order
// all access to the node. Its payload moves with the owner, or to the thread that grants.
unsafe impl<X: HasWaitQueue<LISTS, Payload: Send> + Send + Sync, const LISTS: usize> Send for Seat<X, LISTS> {}
// SAFETY: a shared reference leads to the shared part, which is `Sync` if `X` is, and to nothing else.
unsafe impl<X: HasWaitQueue<LISTS, Payload: Send> + Send + Sync, const LISTS: usize> Sync for Seat<X, LISTS> {}

// The queue is consistent after a panic, and the rest belongs to one owner.
impl<X: HasWaitQueue<LISTS>, const LISTS: usize> UnwindSafe for Seat<X, LISTS> {}
impl<X: HasWaitQueue<LISTS>, const LISTS: usize> RefUnwindSafe for Seat<X, LISTS> {}

impl<X: HasWaitQueue<LISTS>, const LISTS: usize> Seat<X, LISTS> {
    /// Creates the seat of a receiver. Its waits are shown at the location of the caller.
    #[track_caller]
    pub(crate) fn new(shared: Arc<X>) -> Self {
        Self { shared, node: None, pause: Pause::here() }
    }

    /// Creates the seat of another receiver of the same channel, with the same location.
    pub(crate) fn another(&self) -> Self {
        Self { shared: self.shared.clone(), node: None, pause: Pause::at(self.pause.place()) }
    }

    /// Returns the waiter with which the owner is polled, and what else such a poll needs.
    pub(crate) fn waiter(&mut self) -> Seated<'_, X, LISTS> {
        let node = self.node.get_or_insert_with(|| Box::pin(Node::new()));
        // SAFETY: rule 3 of the queue: the node is pinned in its box, and `drop` unlinks it before the box
        // is freed. It is used by us, through `&mut self`, with the lock of one queue: that of `shared`, which
        // does not change, and whose `wait_queue` is always the same field.
        let node = unsafe { OwnedNode::new(node) };
        Seated {
            shared: &self.shared,
            waiter: Waiter::new(self.shared.wait_queue(), node),
            pause: &mut self.pause,
        }
    }

    /// Ends a wait: forgets the waker that was registered for a stop.
    pub(crate) fn rest(&mut self) {
        self.pause = Pause::at(self.pause.place());
    }
}

/// A receiver that is being polled.
pub(crate) struct Seated<'s, X: HasWaitQueue<LISTS>, const LISTS: usize> {
    pub(crate) shared: &'s X,
    pub(crate) waiter: Waiter<'s, X::State, X::Payload, LISTS>,
    pub(crate) pause: &'s mut Pause,
}

impl<X: HasWaitQueue<LISTS>, const LISTS: usize> Deref for Seat<X, LISTS> {
    type Target = Arc<X>;

    #[inline]
    fn deref(&self) -> &Arc<X> {
        &self.shared
    }
}

impl<X: HasWaitQueue<LISTS>, const LISTS: usize> Drop for Seat<X, LISTS> {
    #[inline]
    fn drop(&mut self) {
        if self.node.as_ref().is_some_and(|node| node.state() == WaitState::Queued) {
            drop(self.waiter().waiter.leave());
        }
    }
}

impl<X: HasWaitQueue<LISTS> + fmt::Debug, const LISTS: usize> fmt::Debug for Seat<X, LISTS> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.shared.fmt(f)
    }
}
