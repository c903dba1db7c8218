//! Waiting until a state is so: looks under the lock, waits in a list, and looks again when it was granted.

use core::future::Future;
use core::marker::PhantomData;
use core::pin::Pin;
use core::task::{Context, Poll};

use pin_project_lite::pin_project;

use super::wait::{Left, Wait};
use super::wait_queue::{Locked, Standing, WaitQueue};
use convoke_core::raw::Pause;
use convoke_core::raw::{discard, wake};

/// What is looked at: the state, and those who wait for it in two lists, under the lock.
pub(super) type Look<'l, S> = Locked<'l, S, (), 2>;

pin_project! {
    /// See [`until`].
    pub(super) struct Until<'a, S, F, R> {
        queue: &'a WaitQueue<S, (), 2>,
        list: usize,
        // Whether somebody else is granted if this one goes after it was.
        passes_on: bool,
        look: F,
        pause: Pause,
        #[pin]
        wait: Wait<'a, S, (), 2>,
        _result: PhantomData<fn() -> R>,
    }

    impl<S, F, R> PinnedDrop for Until<'_, S, F, R> {
        #[inline]
        fn drop(this: Pin<&mut Self>) {
            if this.wait.standing() != Standing::Out {
                this.give_up();
            }
        }
    }
}

/// Waits in this list until `look` finds what it looks for. It runs under the lock, and is code of this folder.
#[inline]
pub(super) fn until<'a, S, F, R>(
    queue: &'a WaitQueue<S, (), 2>,
    list: usize,
    pause: Pause,
    look: F,
) -> Until<'a, S, F, R>
where
    F: FnMut(&mut Look<'_, S>) -> Option<R>,
{
    Until { queue, list, passes_on: false, look, pause, wait: Wait::new(queue), _result: PhantomData }
}

/// The same, in a list of which one at a time is granted: if that one goes, it is another's turn.
#[inline]
pub(super) fn until_turn<'a, S, F, R>(
    queue: &'a WaitQueue<S, (), 2>,
    list: usize,
    pause: Pause,
    look: F,
) -> Until<'a, S, F, R>
where
    F: FnMut(&mut Look<'_, S>) -> Option<R>,
{
    Until { queue, list, passes_on: true, look, pause, wait: Wait::new(queue), _result: PhantomData }
}

impl<S, F, R> Until<'_, S, F, R> {
    #[cold]
    fn give_up(self: Pin<&mut Self>) {
        let this = self.project();
        if let (Left::Granted(_), true) = (this.wait.leave(), *this.passes_on) {
            let granted = this.queue.lock().grant(*this.list, |_| ());
            if let Some(((), waker)) = granted {
                wake(waker);
            }
        }
    }
}

impl<S, F, R> Future for Until<'_, S, F, R>
where
    F: FnMut(&mut Look<'_, S>) -> Option<R>,
{
    type Output = R;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<R> {
        if Pause::is_stopped() {
            self.give_up();
            return Poll::Pending;
        }
        if self.wait.standing() == Standing::Queued
            && self.as_mut().project().wait.renew(cx) == Standing::Queued
        {
            self.project().pause.wait(cx);
            return Poll::Pending;
        }
        let mut this = self.project();
        // Who was granted already and finds nothing was the first, and stays it.
        let again = this.wait.as_mut().take_granted().is_some();
        let mut waker = None;
        loop {
            let mut locked = this.queue.lock();
            if let Some(found) = (this.look)(&mut locked) {
                drop(locked);
                // Contained: what was found may be nowhere else any more.
                waker.into_iter().for_each(discard);
                return Poll::Ready(found);
            }
            // Foreign code, a waker's, runs without the lock.
            let Some(waker) = waker.take() else {
                drop(locked);
                waker = Some(cx.waker().clone());
                continue;
            };
            if again {
                this.wait.enqueue_first(&mut locked, *this.list, (), waker);
            } else {
                this.wait.enqueue(&mut locked, *this.list, (), waker);
            }
            drop(locked);
            this.pause.wait(cx);
            return Poll::Pending;
        }
    }
}
