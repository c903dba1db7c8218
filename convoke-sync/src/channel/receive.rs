//! The future that receives a message, or waits until there is one.

use core::fmt;
use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll};

use pin_project_lite::pin_project;

use super::super::wait::{Left, Wait};
use super::super::wait_queue::WaitState;
use super::queue::{Carried, ChannelState, LISTS, Queue, RECEIVERS, Taken};
use convoke_core::raw::{Pause, budget, discard, wake_if_any};

pin_project! {
    /// Future of `recv`, for example [`mpsc::Receiver::recv`](crate::mpsc::Receiver::recv).
    #[must_use = "futures do nothing until they are awaited"]
    pub struct Receive<'a, T> {
        queue: &'a Queue<T>,
        pause: Pause,
        #[pin]
        wait: Wait<'a, ChannelState<T>, Carried<T>, LISTS>,
    }

    impl<T> PinnedDrop for Receive<'_, T> {
        #[inline]
        fn drop(this: Pin<&mut Self>) {
            if this.wait.state() != WaitState::Idle {
                this.give_up();
            }
        }
    }
}

impl<'a, T> Receive<'a, T> {
    #[inline]
    #[track_caller]
    pub(crate) fn new(queue: &'a Queue<T>) -> Self {
        Self { queue, pause: Pause::here(), wait: Wait::new(&queue.waiting) }
    }

    /// Stops waiting, and passes on what it was handed.
    #[cold]
    fn give_up(self: Pin<&mut Self>) {
        let this = self.project();
        match this.wait.waiter().leave() {
            Left::Granted(Carried::Message(message)) => this.queue.put_back(message),
            Left::Granted(_) => this.queue.pass_on(),
            Left::Queued(_) | Left::Idle => {}
        }
    }

    /// Takes a message, or queues if there is none. A receiver that was notified and finds nothing queues at
    /// the front: it was the first.
    #[inline]
    fn take_or_wait(self: Pin<&mut Self>, cx: &mut Context<'_>, was_notified: bool) -> Poll<Option<T>> {
        let this = self.project();
        let likely_empty = this.queue.len() == 0;
        if !likely_empty && Pause::is_stopped() {
            if was_notified {
                this.queue.pass_on();
            }
            return Poll::Pending;
        }
        let mut waiter = this.wait.waiter();
        // The waker is user code, so it is cloned without the lock.
        let mut waker = likely_empty.then(|| cx.waker().clone());
        loop {
            let mut locked = this.queue.waiting.lock();
            match this.queue.take(&mut locked) {
                Taken::Message(message, sender) => {
                    drop(locked);
                    // Both contain a panic of the waker: the message is already ours, and must
                    // not be lost.
                    wake_if_any(sender);
                    waker.into_iter().for_each(discard);
                    budget::spend();
                    return Poll::Ready(Some(message));
                }
                Taken::Closed => {
                    drop(locked);
                    budget::spend();
                    return Poll::Ready(None);
                }
                Taken::Empty => {}
            }
            if let Some(waker) = waker.take() {
                if was_notified {
                    waiter.enqueue_first(&mut locked, RECEIVERS, Carried::Nothing, waker);
                } else {
                    waiter.enqueue(&mut locked, RECEIVERS, Carried::Nothing, waker);
                }
                drop(locked);
                this.pause.wait(cx);
                return Poll::Pending;
            }
            drop(locked);
            waker = Some(cx.waker().clone());
        }
    }
}

impl<T> Future for Receive<'_, T> {
    type Output = Option<T>;

    #[inline]
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<T>> {
        if Pause::was_stopped() {
            self.give_up();
            return Poll::Pending;
        }
        // Before a message is taken: one that waits in the node stays there.
        if !budget::may_proceed(cx) {
            return Poll::Pending;
        }
        let state = self.as_mut().project().wait.state();
        match state {
            WaitState::Idle => return self.take_or_wait(cx, false),
            WaitState::Queued if self.as_mut().project().wait.waiter().renew(cx) == WaitState::Queued => {
                self.project().pause.wait(cx);
                return Poll::Pending;
            }
            WaitState::Queued | WaitState::Granted => {}
        }
        match self.as_mut().project().wait.waiter().take_granted() {
            Some(Carried::Message(message)) => {
                budget::spend();
                Poll::Ready(Some(message))
            }
            _ => self.take_or_wait(cx, true),
        }
    }
}

impl<T> fmt::Debug for Receive<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Receive").field("wait", &self.wait).finish_non_exhaustive()
    }
}
