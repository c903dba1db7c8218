//! The future that sends a message, or waits until the channel is not full.

use core::fmt;
use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll, ready};

use pin_project_lite::pin_project;

use super::super::wait::Wait;
use super::super::wait_queue::WaitState;
use super::SendError;
use super::queue::{Carried, ChannelState, LISTS, Offered, Queue, SENDERS};
use convoke_core::raw::{Pause, budget};

pin_project! {
    /// Future of [`mpsc::Sender::send`](crate::mpsc::Sender::send).
    #[must_use = "futures do nothing until they are awaited"]
    pub struct SendMessage<'a, T> {
        queue: &'a Queue<T>,
        // `None` after it was sent, or moved into our node.
        message: Option<T>,
        pause: Pause,
        #[pin]
        wait: Wait<'a, ChannelState<T>, Carried<T>, LISTS>,
    }
}

impl<'a, T> SendMessage<'a, T> {
    #[inline]
    #[track_caller]
    pub(crate) fn new(queue: &'a Queue<T>, message: T) -> Self {
        Self { queue, message: Some(message), pause: Pause::here(), wait: Wait::new(&queue.waiting) }
    }

    #[inline]
    fn begin(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<(), SendError<T>>> {
        let this = self.project();
        let likely_full = this.queue.len() >= this.queue.capacity();
        if !likely_full && Pause::is_stopped() {
            return Poll::Pending;
        }
        let Some(mut message) = this.message.take() else {
            panic!("a `send` future was polled after it completed")
        };
        // The waker is user code, so it is cloned without the lock.
        let mut waker = likely_full.then(|| cx.waker().clone());
        loop {
            let mut locked = this.queue.waiting.lock();
            match this.queue.offer(&mut locked, message) {
                Offered::Sent(notified) => {
                    drop(locked);
                    notified.wake(this.queue);
                    budget::spend();
                    return Poll::Ready(Ok(()));
                }
                Offered::Closed(message) => {
                    drop(locked);
                    budget::spend();
                    return Poll::Ready(Err(SendError(message)));
                }
                Offered::MustGrow(returned, capacity) => {
                    drop(locked);
                    message = returned;
                    this.queue.grow(capacity);
                }
                Offered::Full(returned) => {
                    if let Some(waker) = waker.take() {
                        this.wait.waiter().enqueue(&mut locked, SENDERS, Carried::Message(returned), waker);
                        drop(locked);
                        this.pause.wait(cx);
                        return Poll::Pending;
                    }
                    drop(locked);
                    message = returned;
                    waker = Some(cx.waker().clone());
                }
            }
        }
    }
}

impl<T> Future for SendMessage<'_, T> {
    type Output = Result<(), SendError<T>>;

    #[inline]
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        if Pause::was_stopped() {
            let this = self.project();
            // If a receiver has taken the message out of our node by now, it is sent.
            let left = this.wait.waiter().leave();
            drop((left, this.message.take()));
            return Poll::Pending;
        }
        if !budget::may_proceed(cx) {
            return Poll::Pending;
        }
        let this = self.as_mut().project();
        if ready!(this.wait.waiter().poll_granted(this.pause, cx)) == WaitState::Idle {
            return self.begin(cx);
        }
        budget::spend();
        match self.project().wait.waiter().take_granted() {
            // The message is still in our node: the channel was closed.
            Some(Carried::Message(message)) => Poll::Ready(Err(SendError(message))),
            _ => Poll::Ready(Ok(())),
        }
    }
}

impl<T> fmt::Debug for SendMessage<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SendMessage").field("wait", &self.wait).finish_non_exhaustive()
    }
}
