//! Permits to send: slots of a channel that are reserved before there is a message.

use core::fmt;
use core::future::Future;
use core::mem;
use core::pin::Pin;
use core::task::{Context, Poll, ready};

use pin_project_lite::pin_project;

use super::super::wait::{Left, Wait};
use super::super::wait_queue::WaitState;
use super::queue::{Carried, ChannelState, LISTS, Queue, SENDERS};
use super::{SendError, Sender, TrySendError};
use convoke_core::raw::{Pause, budget, discard};

/// Permit to send one message: a slot of the channel that is reserved until this sends or is dropped. Created
/// by [`Sender::reserve`] and [`Sender::try_reserve`].
#[doc(alias = "Permit")]
#[must_use = "the slot is free again when this is dropped"]
pub struct SendPermit<'a, T> {
    queue: &'a Queue<T>,
}

/// Permit to send one message, without a lifetime: it owns a sender of the channel. Created by
/// [`Sender::reserve_owned`] and [`Sender::try_reserve_owned`].
#[doc(alias = "OwnedPermit")]
#[must_use = "the slot is free again when this is dropped"]
pub struct OwnedSendPermit<T> {
    sender: Sender<T>,
    /// False once it has sent.
    holds_slot: bool,
}

impl<T> SendPermit<'_, T> {
    /// Sends the message. This neither waits nor fails: the slot is there, also if the channel was closed
    /// meanwhile. If all receivers are dropped, so is the message.
    pub fn send(self, message: T) {
        let queue = self.queue;
        mem::forget(self);
        drop(queue.fill_reserved(Some(message)));
    }
}

impl<T> OwnedSendPermit<T> {
    pub(super) fn new(permit: SendPermit<'_, T>, sender: Sender<T>) -> Self {
        mem::forget(permit);
        Self { sender, holds_slot: true }
    }

    /// Sends the message. This neither waits nor fails: the slot is there, also if the channel was closed
    /// meanwhile. If all receivers are dropped, so is the message.
    pub fn send(mut self, message: T) {
        self.holds_slot = false;
        drop(self.sender.queue().fill_reserved(Some(message)));
    }
}

impl<T> Drop for SendPermit<'_, T> {
    fn drop(&mut self) {
        self.queue.fill_reserved(None);
    }
}

impl<T> Drop for OwnedSendPermit<T> {
    fn drop(&mut self) {
        if self.holds_slot {
            self.sender.queue().fill_reserved(None);
        }
    }
}

impl<T> fmt::Debug for SendPermit<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("SendPermit").field(&self.queue).finish()
    }
}

impl<T> fmt::Debug for OwnedSendPermit<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("OwnedSendPermit").field(&self.sender).finish()
    }
}

/// Reserves a slot if the channel is not full.
pub(super) fn try_reserve<T>(queue: &Queue<T>) -> Result<SendPermit<'_, T>, TrySendError<()>> {
    queue.reserve(&mut queue.waiting.lock()).map(|()| SendPermit { queue })
}

pin_project! {
    /// Future of [`Sender::reserve`].
    #[must_use = "futures do nothing until they are awaited"]
    pub struct Reserve<'a, T> {
        queue: &'a Queue<T>,
        pause: Pause,
        #[pin]
        wait: Wait<'a, ChannelState<T>, Carried<T>, LISTS>,
    }

    impl<T> PinnedDrop for Reserve<'_, T> {
        #[inline]
        fn drop(this: Pin<&mut Self>) {
            if this.wait.state() != WaitState::Idle {
                this.give_up();
            }
        }
    }
}

impl<'a, T> Reserve<'a, T> {
    #[inline]
    pub(super) fn new(queue: &'a Queue<T>, pause: Pause) -> Self {
        Self { queue, pause, wait: Wait::new(&queue.waiting) }
    }

    /// Stops waiting. A slot that was reserved for it goes to the next sender.
    #[cold]
    fn give_up(self: Pin<&mut Self>) {
        let this = self.project();
        if let Left::Granted(Carried::Nothing) = this.wait.waiter().leave() {
            this.queue.fill_reserved(None);
        }
    }

    /// Reserves a slot, or queues if there is none.
    fn reserve_or_wait(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<(), SendError<()>>> {
        let this = self.project();
        // The waker is user code, so it is cloned without the lock.
        let mut waker = None;
        loop {
            let mut locked = this.queue.waiting.lock();
            match this.queue.reserve(&mut locked) {
                Err(TrySendError::Full(())) => {}
                reserved => {
                    drop(locked);
                    waker.into_iter().for_each(discard);
                    budget::spend();
                    return Poll::Ready(reserved.map_err(|_| SendError(())));
                }
            }
            if let Some(waker) = waker.take() {
                this.wait.waiter().enqueue(&mut locked, SENDERS, Carried::WantsSlot, waker);
                drop(locked);
                this.pause.wait(cx);
                return Poll::Pending;
            }
            drop(locked);
            waker = Some(cx.waker().clone());
        }
    }

    fn poll_reserved(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<(), SendError<()>>> {
        if Pause::is_stopped() {
            self.give_up();
            return Poll::Pending;
        }
        // A slot that was reserved for it stays reserved.
        if !budget::may_proceed(cx) {
            return Poll::Pending;
        }
        let this = self.as_mut().project();
        if ready!(this.wait.waiter().poll_granted(this.pause, cx)) == WaitState::Idle {
            return self.reserve_or_wait(cx);
        }
        budget::spend();
        match self.project().wait.waiter().take_granted() {
            // The wish is still in our node: the channel was closed.
            Some(Carried::WantsSlot) => Poll::Ready(Err(SendError(()))),
            _ => Poll::Ready(Ok(())),
        }
    }
}

impl<'a, T> Future for Reserve<'a, T> {
    type Output = Result<SendPermit<'a, T>, SendError<()>>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let queue = self.queue;
        self.poll_reserved(cx).map_ok(|()| SendPermit { queue })
    }
}

impl<T> fmt::Debug for Reserve<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reserve").field("wait", &self.wait).finish_non_exhaustive()
    }
}
