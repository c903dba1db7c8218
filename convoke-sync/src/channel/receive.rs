//! Receiving a message, and waiting until there is one.

use core::fmt;
use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll};

use pin_project_lite::pin_project;

use super::super::wait::{Left, Wait};
use super::super::wait_queue::Standing;
use super::queue::{Queue, RECEIVERS, State, Taken};
use convoke_core::raw::Pause;
use convoke_core::raw::{discard, wake_if_any};

pin_project! {
    /// See [`mpsc::Receiver::recv`](crate::mpsc::Receiver::recv).
    #[must_use = "futures do nothing until they are awaited"]
    pub struct Receive<'a, T> {
        queue: &'a Queue<T>,
        pause: Pause,
        #[pin]
        wait: Wait<'a, State<T>, Option<T>, 2>,
    }

    impl<T> PinnedDrop for Receive<'_, T> {
        #[inline]
        fn drop(this: Pin<&mut Self>) {
            if this.wait.standing() != Standing::Out {
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

    /// Does not wait any more: what it was given goes to somebody else.
    #[cold]
    fn give_up(self: Pin<&mut Self>) {
        let this = self.project();
        match this.wait.leave() {
            Left::Granted(Some(message)) => this.queue.put_back(message),
            Left::Granted(_) => this.queue.pass_on(),
            Left::Queued(_) | Left::Out => {}
        }
    }

    /// Looks, and waits if there is nothing. Whoever was told to look and finds nothing waits in front: it was the
    /// first.
    #[inline]
    fn look(self: Pin<&mut Self>, cx: &mut Context<'_>, again: bool) -> Poll<Option<T>> {
        let likely_empty = self.queue.len() == 0;
        if !likely_empty && Pause::is_stopped() {
            if again {
                self.project().queue.pass_on();
            }
            return Poll::Pending;
        }
        let this = self.project();
        // Foreign code, a waker's, runs without the lock.
        let mut waker = likely_empty.then(|| cx.waker().clone());
        loop {
            let mut locked = this.queue.waiting.lock();
            match this.queue.take(&mut locked) {
                Taken::Message(message, sender) => {
                    drop(locked);
                    // Contained, both of them: the message is ours by now.
                    wake_if_any(sender);
                    waker.into_iter().for_each(discard);
                    return Poll::Ready(Some(message));
                }
                Taken::Closed => {
                    drop(locked);
                    return Poll::Ready(None);
                }
                Taken::Empty => {}
            }
            if let Some(waker) = waker.take() {
                if again {
                    this.wait.enqueue_first(&mut locked, RECEIVERS, None, waker);
                } else {
                    this.wait.enqueue(&mut locked, RECEIVERS, None, waker);
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
        match self.wait.standing() {
            Standing::Out => return self.look(cx, false),
            Standing::Queued if self.as_mut().project().wait.renew(cx) == Standing::Queued => {
                self.project().pause.wait(cx);
                return Poll::Pending;
            }
            Standing::Queued | Standing::Granted => {}
        }
        match self.as_mut().project().wait.take_granted().flatten() {
            Some(message) => Poll::Ready(Some(message)),
            None => self.look(cx, true),
        }
    }
}

impl<T> fmt::Debug for Receive<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Receive").field("wait", &self.wait).finish_non_exhaustive()
    }
}
