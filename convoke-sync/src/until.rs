//! Waiting until a condition on the state of a queue is true. The future checks it under the lock, waits in a
//! list, and checks again when it is granted.

use core::future::Future;
use core::marker::PhantomData;
use core::pin::Pin;
use core::task::{Context, Poll};

use pin_project_lite::pin_project;

use super::wait::{Left, Wait};
use super::wait_queue::{Locked, WaitQueue, WaitState};
use convoke_core::raw::{Pause, budget, discard, wake};

/// The locked state and its two wait lists, which a condition may read and change.
pub(super) type Guard<'l, S> = Locked<'l, S, (), 2>;

pin_project! {
    /// Future of [`until`] and [`until_turn`].
    pub(super) struct Until<'a, S, F, R> {
        queue: &'a WaitQueue<S, (), 2>,
        list: usize,
        // True if a grant that this future does not use must go to the next waiter.
        passes_on: bool,
        check: F,
        pause: Pause,
        #[pin]
        wait: Wait<'a, S, (), 2>,
        _result: PhantomData<fn() -> R>,
    }

    impl<S, F, R> PinnedDrop for Until<'_, S, F, R> {
        #[inline]
        fn drop(this: Pin<&mut Self>) {
            if this.wait.state() != WaitState::Idle {
                this.give_up();
            }
        }
    }
}

/// Waits in `list` until `check` returns `Some`. `check` runs under the lock, so it must not run user code.
#[inline]
pub(super) fn until<'a, S, F, R>(
    queue: &'a WaitQueue<S, (), 2>,
    list: usize,
    pause: Pause,
    check: F,
) -> Until<'a, S, F, R>
where
    F: FnMut(&mut Guard<'_, S>) -> Option<R>,
{
    Until { queue, list, passes_on: false, check, pause, wait: Wait::new(queue), _result: PhantomData }
}

/// Waits in `list` until `check` returns `Some`. For lists in which one waiter is granted at a time: a
/// granted waiter that is dropped or stopped passes its grant on.
#[inline]
pub(super) fn until_turn<'a, S, F, R>(
    queue: &'a WaitQueue<S, (), 2>,
    list: usize,
    pause: Pause,
    check: F,
) -> Until<'a, S, F, R>
where
    F: FnMut(&mut Guard<'_, S>) -> Option<R>,
{
    Until { queue, list, passes_on: true, check, pause, wait: Wait::new(queue), _result: PhantomData }
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
    F: FnMut(&mut Guard<'_, S>) -> Option<R>,
{
    type Output = R;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<R> {
        if Pause::is_stopped() {
            self.give_up();
            return Poll::Pending;
        }
        // Before the condition is checked, which may take something.
        if !budget::may_proceed(cx) {
            return Poll::Pending;
        }
        if self.wait.state() == WaitState::Queued
            && self.as_mut().project().wait.renew(cx) == WaitState::Queued
        {
            self.project().pause.wait(cx);
            return Poll::Pending;
        }
        let mut this = self.project();
        // A waiter that was granted and finds the condition false was the first in its list, and queues at
        // the front again.
        let was_granted = this.wait.as_mut().take_granted().is_some();
        let mut waker = None;
        loop {
            let mut locked = this.queue.lock();
            if let Some(found) = (this.check)(&mut locked) {
                drop(locked);
                // `discard` contains a panic of the waker: the result may exist only here, and must
                // not be lost.
                waker.into_iter().for_each(discard);
                budget::spend();
                return Poll::Ready(found);
            }
            // The waker is user code, so it is cloned without the lock.
            let Some(waker) = waker.take() else {
                drop(locked);
                waker = Some(cx.waker().clone());
                continue;
            };
            if was_granted {
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
