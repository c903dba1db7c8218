//! Waiting until a condition on the state of a queue is true. The future checks it under the lock, waits in a
//! list, and checks again when it is granted.

use core::future::Future;
use core::marker::PhantomData;
use core::pin::Pin;
use core::task::{Context, Poll};

use pin_project_lite::pin_project;

use super::seat::{HasWaitQueue, Seat, Seated};
use super::wait::{Left, Wait, Waiter};
use super::wait_queue::{Locked, WaitQueue, WaitState};
use convoke_core::raw::{Pause, budget, discard, wake};

/// The locked state and its two wait lists, which a condition may read and change.
pub(super) type Guard<'l, S> = Locked<'l, S, (), 2>;

/// A list, and what a waiter in it does with a grant that it does not use.
#[derive(Clone, Copy, Debug)]
struct InList {
    list: usize,
    /// True if such a grant must go to the next waiter.
    passes_on: bool,
}

pin_project! {
    /// Future of [`until`] and [`until_turn`].
    pub(super) struct Until<'a, S, F, R> {
        in_list: InList,
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
                let this = this.project();
                give_up(this.wait.waiter(), *this.in_list);
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
    let in_list = InList { list, passes_on: false };
    Until { in_list, check, pause, wait: Wait::new(queue), _result: PhantomData }
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
    let in_list = InList { list, passes_on: true };
    Until { in_list, check, pause, wait: Wait::new(queue), _result: PhantomData }
}

/// Polls a receiver directly: waits in `list`, whose waiters are all granted together, until `check` returns
/// `Some`. `check` runs under the lock, so it must not run user code.
pub(super) fn poll_seat<X, R, const LISTS: usize>(
    seat: &mut Seat<X, LISTS>,
    list: usize,
    mut check: impl FnMut(&X, &mut Locked<'_, X::State, X::Payload, LISTS>) -> Option<R>,
    cx: &mut Context<'_>,
) -> Poll<R>
where
    X: HasWaitQueue<LISTS, Payload: Default>,
{
    let Seated { shared, waiter, pause } = seat.waiter();
    let in_list = InList { list, passes_on: false };
    let polled = poll(waiter, in_list, pause, |locked| check(shared, locked), cx);
    if polled.is_ready() {
        seat.rest();
    }
    polled
}

/// Leaves the list, and passes an unused grant on if the rule of the list demands it.
#[cold]
fn give_up<S, P, const LISTS: usize>(mut waiter: Waiter<'_, S, P, LISTS>, in_list: InList) {
    if let (Left::Granted(_), true) = (waiter.leave(), in_list.passes_on) {
        let granted = waiter.queue().lock().grant(in_list.list, |_| ());
        if let Some(((), waker)) = granted {
            wake(waker);
        }
    }
}

/// Checks the condition, or waits for a grant to check it again.
fn poll<S, P: Default, R, const LISTS: usize>(
    mut waiter: Waiter<'_, S, P, LISTS>,
    in_list: InList,
    pause: &mut Pause,
    mut check: impl FnMut(&mut Locked<'_, S, P, LISTS>) -> Option<R>,
    cx: &mut Context<'_>,
) -> Poll<R> {
    if Pause::is_stopped() {
        give_up(waiter, in_list);
        return Poll::Pending;
    }
    // Before the condition is checked, which may take something.
    if !budget::may_proceed(cx) {
        return Poll::Pending;
    }
    if waiter.state() == WaitState::Queued && waiter.renew(cx) == WaitState::Queued {
        pause.wait(cx);
        return Poll::Pending;
    }
    // A waiter that was granted and finds the condition false was the first in its list, and queues at the
    // front again.
    let was_granted = waiter.take_granted().is_some();
    let mut waker = None;
    loop {
        let mut locked = waiter.queue().lock();
        if let Some(found) = check(&mut locked) {
            drop(locked);
            // `discard` contains a panic of the waker: the result may exist only here, and must not be lost.
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
            waiter.enqueue_first(&mut locked, in_list.list, P::default(), waker);
        } else {
            waiter.enqueue(&mut locked, in_list.list, P::default(), waker);
        }
        drop(locked);
        pause.wait(cx);
        return Poll::Pending;
    }
}

impl<S, F, R> Future for Until<'_, S, F, R>
where
    F: FnMut(&mut Guard<'_, S>) -> Option<R>,
{
    type Output = R;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<R> {
        let this = self.project();
        poll(this.wait.waiter(), *this.in_list, this.pause, this.check, cx)
    }
}
