//! `Notify`: tells one waiting task, or all of them, that something has happened.
//!
//! 1. `notify_one` grants the first waiter, or stores one permit if none waits. So there is a permit only
//!    while nothing waits.
//! 2. A waiter that was granted by `notify_one`, and is dropped or stopped before it has completed, passes the
//!    notification on: to the next waiter, or as the permit.
//! 3. `notify_waiters` counts up `rounds`. A waiter that was created before has a lower number, and completes,
//!    also if it was not polled yet. Such a notification is not passed on.
//! 4. A waiter queues only while `rounds` is its own number. So the numbers in the queue never go down, and
//!    `notify_waiters` grants from the front until it finds one that came later.

use core::fmt;
use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll, ready};

use pin_project_lite::pin_project;

use convoke_core::raw::sync::const_outside_models;
use convoke_core::raw::{Pause, budget, discard, wake_if_any};

use super::wait::{Left, Wait};
use super::wait_queue::{WaitQueue, WaitState};

/// Notifies one waiting task, or all of them.
///
/// A notification by [`notify_one`](Notify::notify_one) that nothing waits for is stored, at most one, and
/// taken by the next [`notified`](Notify::notified). Use [`Event`](super::Event) for a flag that stays set, and
/// a [`Semaphore`](super::Semaphore) to count notifications. Nothing allocates.
///
/// ```
/// use convoke::prelude::*;
/// use convoke::sync::Notify;
/// use std::sync::Arc;
///
/// let outcome = block_on(async {
///     scope(async |s| {
///         let arrived = Arc::new(Notify::new());
///         let notifies = arrived.clone();
///         s.spawn(async move { notifies.notify_one() });
///         arrived.notified().await;
///         "arrived"
///     })
///     .await
/// });
/// assert_eq!(outcome, Outcome::Value("arrived"));
/// ```
pub struct Notify {
    queue: WaitQueue<NotifyState, Payload>,
}

struct NotifyState {
    /// Rule 1.
    permit: bool,
    /// Rule 3.
    rounds: u64,
}

/// The payload of a waiter.
#[derive(Clone, Copy, Debug)]
enum Payload {
    /// It waits, with the number of rounds at its creation.
    Waits(u64),
    /// It was granted by `notify_one`.
    ByOne,
    /// It was granted by `notify_waiters`.
    ByAll,
}

impl Notify {
    const_outside_models! {
        /// Creates one without a stored notification.
        pub fn new() -> Self {
            Self { queue: WaitQueue::new(NotifyState { permit: false, rounds: 0 }) }
        }
    }

    /// Notifies the task that waits longest. If none waits, the notification is stored for the next
    /// [`notified`](Notify::notified), unless one is stored already.
    pub fn notify_one(&self) {
        let mut locked = self.queue.lock();
        let granted = locked.grant(0, |payload| *payload = Payload::ByOne);
        if granted.is_none() {
            locked.state().permit = true;
        }
        drop(locked);
        wake_if_any(granted.map(|((), waker)| waker));
    }

    /// Notifies all tasks that wait now: those that have called [`notified`](Notify::notified), also if they
    /// have not polled it yet. Nothing is stored.
    pub fn notify_waiters(&self) {
        let mut locked = self.queue.lock();
        locked.state().rounds += 1;
        let round = locked.state().rounds;
        drop(locked);
        // One at a time: wakers are called without the lock.
        loop {
            let mut locked = self.queue.lock();
            // Rule 4.
            if !matches!(locked.first(0), Some(Payload::Waits(created)) if *created < round) {
                return;
            }
            let granted = locked.grant(0, |payload| *payload = Payload::ByAll);
            drop(locked);
            wake_if_any(granted.map(|((), waker)| waker));
        }
    }

    /// Waits for a notification.
    ///
    /// - *Completes with* `()`, at once if a notification is stored, which it takes; or as stopped if a stop
    ///   was requested, even if one is stored.
    /// - *If dropped* or stopped, it stops waiting. A notification by `notify_one` that it has already got goes
    ///   to the next waiter, or is stored.
    /// - *Runs on* the calling task. It also works outside a task, but cannot be stopped there.
    #[track_caller]
    pub fn notified(&self) -> Notified<'_> {
        let pause = Pause::here();
        let round = self.queue.lock().state().rounds;
        Notified { notify: self, round, pause, wait: Wait::new(&self.queue) }
    }
}

pin_project! {
    /// Future of [`Notify::notified`].
    #[must_use = "futures do nothing until they are awaited"]
    pub struct Notified<'a> {
        notify: &'a Notify,
        // The number of rounds at its creation.
        round: u64,
        pause: Pause,
        #[pin]
        wait: Wait<'a, NotifyState, Payload>,
    }

    impl PinnedDrop for Notified<'_> {
        #[inline]
        fn drop(this: Pin<&mut Self>) {
            if this.wait.state() != WaitState::Idle {
                this.give_up();
            }
        }
    }
}

impl Notified<'_> {
    /// Stops waiting, and passes on what it was granted: rule 2.
    #[cold]
    fn give_up(self: Pin<&mut Self>) {
        let this = self.project();
        if let Left::Granted(Payload::ByOne) = this.wait.waiter().leave() {
            this.notify.notify_one();
        }
    }

    /// Takes a notification that is there, or queues.
    fn take_or_wait(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let this = self.project();
        // The waker is user code, so it is cloned without the lock.
        let mut waker = None;
        loop {
            let mut locked = this.notify.queue.lock();
            let state = locked.state();
            if state.rounds != *this.round || core::mem::take(&mut state.permit) {
                drop(locked);
                waker.into_iter().for_each(discard);
                budget::spend();
                return Poll::Ready(());
            }
            if let Some(waker) = waker.take() {
                this.wait.waiter().enqueue(&mut locked, 0, Payload::Waits(*this.round), waker);
                drop(locked);
                this.pause.wait(cx);
                return Poll::Pending;
            }
            drop(locked);
            waker = Some(cx.waker().clone());
        }
    }
}

impl Future for Notified<'_> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        if Pause::is_stopped() {
            self.give_up();
            return Poll::Pending;
        }
        // A notification that it was granted stays granted.
        if !budget::may_proceed(cx) {
            return Poll::Pending;
        }
        let this = self.as_mut().project();
        if ready!(this.wait.waiter().poll_granted(this.pause, cx)) == WaitState::Idle {
            return self.take_or_wait(cx);
        }
        self.project().wait.waiter().take_granted();
        budget::spend();
        Poll::Ready(())
    }
}

impl Default for Notify {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Notify {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Notify").field("stored", &self.queue.lock().state().permit).finish()
    }
}

impl fmt::Debug for Notified<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Notified").field("wait", &self.wait).finish_non_exhaustive()
    }
}
