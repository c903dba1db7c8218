//! Channel that holds the latest value: `watch::channel(value)`.

#![allow(unsafe_code)]

use core::fmt;
use core::future::Future;
use core::ops::Deref;
use core::pin::Pin;
use core::task::{Context, Poll};
use std::sync::{Arc, PoisonError};

use convoke_core::raw::Pause;
use convoke_core::raw::sync::{RwLock, RwLockReadGuard};
use futures_core::Stream;

pub use super::channel::{Closed, SendError};
use super::seat::{HasWaitQueue, Seat};
use super::until::{Guard, poll_seat, until};
use super::wait_queue::WaitQueue;

/// List of the receivers that wait for a change.
const CHANGE: usize = 0;
/// List of the senders that wait until there are no receivers.
const CLOSED: usize = 1;

/// Creates a channel that holds one value. Senders replace it, and receivers read the latest one. A slow
/// receiver misses the values in between.
///
/// ```
/// use convoke::prelude::*;
/// use convoke::sync::watch;
///
/// let outcome = block_on(async {
///     scope(async |s| {
///         let (sender, mut receiver) = watch::channel("starting");
///         s.spawn(async move {
///             sender.send("running").expect("there is a receiver");
///             checkpoint().await;
///             sender.send("done").expect("there is a receiver");
///         });
///         let mut seen = vec![*receiver.borrow()];
///         while receiver.changed().await.is_ok() {
///             seen.push(*receiver.borrow());
///         }
///         seen
///     })
///     .await
/// });
/// assert_eq!(outcome, Outcome::Value(vec!["starting", "running", "done"]));
/// ```
#[track_caller]
pub fn channel<T>(value: T) -> (Sender<T>, Receiver<T>) {
    let state = WatchState { version: 0, senders: 1, receivers: 1 };
    let shared = Arc::new(SharedValue { value: RwLock::new(value), queue: WaitQueue::new(state) });
    (Sender(shared.clone()), Receiver { shared: Seat::new(shared), seen: Some(0), streamed: false })
}

struct SharedValue<T> {
    /// Locked before the lock of the queue, where both are needed.
    value: RwLock<T>,
    queue: WaitQueue<WatchState, (), 2>,
}

// SAFETY: `wait_queue` below always borrows the field `queue`, which is never replaced: the value is behind an `Arc`.
unsafe impl<T> HasWaitQueue<2> for SharedValue<T> {
    type State = WatchState;
    type Payload = ();

    fn wait_queue(&self) -> &WaitQueue<WatchState, (), 2> {
        &self.queue
    }
}

struct WatchState {
    /// Counts the changes of the value.
    version: u64,
    senders: usize,
    receivers: usize,
}

/// Sending half of a watch channel: it changes the value. Clones change the same value.
pub struct Sender<T>(Arc<SharedValue<T>>);

/// Receiving half of a watch channel: it reads the value. A clone has seen the same value as the original.
pub struct Receiver<T> {
    shared: Seat<SharedValue<T>, 2>,
    /// The version of the value that this receiver has seen. `None` if it is to take any for unseen.
    seen: Option<u64>,
    /// True once it was polled as a stream, which begins with the current value.
    streamed: bool,
}

/// A read guard on the value of a watch channel. The value does not change while it exists, so do not hold it
/// across an await.
#[must_use = "the value is locked for reading while this exists"]
pub struct Ref<'a, T>(RwLockReadGuard<'a, T>);

impl<T> SharedValue<T> {
    fn read(&self) -> RwLockReadGuard<'_, T> {
        self.value.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the value, and wakes the receivers if `change` returns true beside its result.
    fn change<R>(&self, change: impl FnOnce(&mut T) -> (R, bool)) -> R {
        let mut value = self.value.write().unwrap_or_else(PoisonError::into_inner);
        let (result, changed) = change(&mut value);
        if !changed {
            return result;
        }
        let mut locked = self.queue.lock();
        let state = locked.state();
        state.version = state.version.wrapping_add(1);
        drop(locked);
        drop(value);
        self.queue.grant_all(CHANGE);
        result
    }
}

impl<T> Sender<T> {
    /// Replaces the value. Returns it in the error if there are no receivers.
    pub fn send(&self, value: T) -> Result<(), SendError<T>> {
        if self.is_closed() {
            return Err(SendError(value));
        }
        drop(self.replace(value));
        Ok(())
    }

    /// Replaces the value and returns the old one, even if there are no receivers.
    #[doc(alias = "send_replace")]
    pub fn replace(&self, value: T) -> T {
        self.0.change(|before| (core::mem::replace(before, value), true))
    }

    /// Changes the value in place.
    ///
    /// # Panics
    /// If `change` panics. The value then stays as it was left, and no receiver is woken.
    #[doc(alias = "send_modify")]
    pub fn modify<R>(&self, change: impl FnOnce(&mut T) -> R) -> R {
        self.0.change(|value| (change(value), true))
    }

    /// Changes the value in place if necessary: `change` returns true if it has changed it, and only then the
    /// receivers are woken. Returns the same.
    ///
    /// # Panics
    /// If `change` panics. The value then stays as it was left, and no receiver is woken.
    #[doc(alias = "send_if_modified")]
    pub fn modify_if(&self, change: impl FnOnce(&mut T) -> bool) -> bool {
        self.0.change(|value| {
            let changed = change(value);
            (changed, changed)
        })
    }

    /// Locks the value for reading.
    pub fn borrow(&self) -> Ref<'_, T> {
        Ref(self.0.read())
    }

    /// Creates a receiver that has seen the current value.
    #[track_caller]
    pub fn subscribe(&self) -> Receiver<T> {
        let mut locked = self.0.queue.lock();
        let state = locked.state();
        state.receivers += 1;
        let seen = Some(state.version);
        drop(locked);
        Receiver { shared: Seat::new(self.0.clone()), seen, streamed: false }
    }

    /// Returns the number of receivers.
    #[doc(alias = "receiver_count")]
    pub fn receivers(&self) -> usize {
        self.0.queue.lock().state().receivers
    }

    /// Returns true if there are no receivers.
    pub fn is_closed(&self) -> bool {
        self.0.queue.lock().state().receivers == 0
    }

    /// Waits until there are no receivers.
    ///
    /// - *Completes with* `()`, or as stopped.
    /// - *If dropped*, it stops waiting.
    /// - *Runs on* the calling task. It also works outside a task, but cannot be stopped there.
    #[track_caller]
    pub fn closed(&self) -> impl Future<Output = ()> {
        until(&self.0.queue, CLOSED, Pause::here(), |locked| (locked.state().receivers == 0).then_some(()))
    }
}

impl<T> Receiver<T> {
    /// Locks the value for reading. Does not mark it as seen.
    pub fn borrow(&self) -> Ref<'_, T> {
        Ref(self.shared.read())
    }

    /// Locks the value for reading and marks it as seen.
    pub fn borrow_and_update(&mut self) -> Ref<'_, T> {
        Ref(see(&self.shared, &mut self.seen))
    }

    /// Returns true if the value was changed since this receiver has seen it.
    pub fn has_changed(&self) -> bool {
        Some(self.shared.queue.lock().state().version) != self.seen
    }

    /// Marks the current value as not seen: the next [`changed`](Receiver::changed) completes at once.
    pub fn mark_changed(&mut self) {
        self.seen = None;
    }

    /// Marks the current value as seen: the next [`changed`](Receiver::changed) waits for another one.
    pub fn mark_unchanged(&mut self) {
        self.seen = Some(self.shared.queue.lock().state().version);
    }

    /// Returns true if all senders are dropped: the value will not change any more.
    pub fn is_closed(&self) -> bool {
        self.shared.queue.lock().state().senders == 0
    }

    /// Waits until there is a value that this receiver has not seen, and marks it as seen.
    ///
    /// - *Completes with* `Ok(())`; with [`Closed`] if the latest value is seen and all senders are dropped;
    ///   or as stopped if a stop was requested, even if there is a new value.
    /// - *If dropped*, it stops waiting, and the value is not marked as seen.
    /// - *Runs on* the calling task. It also works outside a task, but cannot be stopped there.
    #[track_caller]
    pub fn changed(&mut self) -> impl Future<Output = Result<(), Closed>> {
        let Self { shared, seen, .. } = self;
        until(&shared.queue, CHANGE, Pause::here(), move |locked| change_since(locked, seen))
    }

    /// Waits until the value is as `is_wanted` wants it, and marks it as seen. The current value counts, also
    /// if it was seen before. Values that are replaced before the receiver has seen them are skipped.
    ///
    /// - *Completes with* a read guard on the value; with [`Closed`] if the latest value is not as wanted and
    ///   all senders are dropped; or as stopped if a stop was requested, even if the value is as wanted.
    /// - *If dropped*, it stops waiting. Values that it has checked are marked as seen.
    /// - *Runs on* the calling task. It also works outside a task, but cannot be stopped there.
    /// - *Panics* if `is_wanted` panics. It is called while the value is locked for reading.
    ///
    /// ```
    /// use convoke::prelude::*;
    /// use convoke::sync::watch;
    ///
    /// let outcome = block_on(async {
    ///     scope(async |s| {
    ///         let (sender, mut receiver) = watch::channel(0);
    ///         s.spawn(async move {
    ///             for percent in [20, 60, 100] {
    ///                 checkpoint().await;
    ///                 sender.replace(percent);
    ///             }
    ///         });
    ///         let reached = receiver.wait_for(|percent| *percent >= 50).await;
    ///         reached.map(|percent| *percent)
    ///     })
    ///     .await
    /// });
    /// assert_eq!(outcome, Outcome::Value(Ok(60)));
    /// ```
    #[track_caller]
    pub fn wait_for(
        &mut self,
        mut is_wanted: impl FnMut(&T) -> bool,
    ) -> impl Future<Output = Result<Ref<'_, T>, Closed>> {
        let place = Pause::here().place();
        let Self { shared, seen, .. } = self;
        let shared: &SharedValue<T> = shared;
        async move {
            // The first value may be as wanted: then nothing below checks for a stop.
            Pause::stop_here().await;
            loop {
                // In a block of its own, so that the lock is not held while it waits.
                {
                    let value = see(shared, seen);
                    if is_wanted(&value) {
                        return Ok(Ref(value));
                    }
                }
                until(&shared.queue, CHANGE, Pause::at(place), |locked| change_since(locked, seen)).await?;
            }
        }
    }
}

/// Locks the value for reading and marks it as seen.
fn see<'a, T>(shared: &'a SharedValue<T>, seen: &mut Option<u64>) -> RwLockReadGuard<'a, T> {
    let value = shared.read();
    // The read lock keeps senders from changing the value and its version in between.
    *seen = Some(shared.queue.lock().state().version);
    value
}

/// Marks a value that was not seen as seen. Returns `None` if there is none, and one may still come.
fn change_since(locked: &mut Guard<'_, WatchState>, seen: &mut Option<u64>) -> Option<Result<(), Closed>> {
    let state = locked.state();
    if *seen != Some(state.version) {
        *seen = Some(state.version);
        return Some(Ok(()));
    }
    (state.senders == 0).then_some(Err(Closed))
}

/// Stream of values: first the current one, then each that this receiver sees. It ends when all senders are
/// dropped. Values that are replaced before the stream is polled are skipped. A poll that is stopped marks
/// nothing as seen. The first one allocates the memory with which the stream waits, and the rest allocate
/// nothing.
///
/// ```
/// use convoke::prelude::*;
/// use convoke::sync::watch;
/// use convoke::task::map_concurrent;
///
/// let outcome = block_on(async {
///     let (sender, receiver) = watch::channel("starting");
///     let mut states = map_concurrent(receiver, 1, async |state| state);
///     let first = states.next().await;
///     sender.send("running").expect("there is a receiver");
///     drop(sender);
///     (first, states.next().await, states.next().await)
/// });
/// assert_eq!(outcome, Outcome::Value((Some("starting"), Some("running"), None)));
/// ```
impl<T: Clone> Stream for Receiver<T> {
    type Item = T;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<T>> {
        let Self { shared, seen, streamed } = &mut *self;
        let check = |_: &SharedValue<T>, locked: &mut Guard<'_, WatchState>| {
            if *streamed { change_since(locked, seen) } else { Some(Ok(())) }
        };
        poll_seat(shared, CHANGE, check, cx).map(|changed| {
            changed.ok()?;
            *streamed = true;
            Some(see(shared, seen).clone())
        })
    }
}

impl<T> Deref for Ref<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T> Clone for Sender<T> {
    fn clone(&self) -> Self {
        self.0.queue.lock().state().senders += 1;
        Self(self.0.clone())
    }
}

impl<T> Clone for Receiver<T> {
    fn clone(&self) -> Self {
        self.shared.queue.lock().state().receivers += 1;
        Self { shared: self.shared.another(), seen: self.seen, streamed: false }
    }
}

impl<T> Drop for Sender<T> {
    fn drop(&mut self) {
        self.0.queue.lock().state().senders -= 1;
        self.0.queue.grant_all(CHANGE);
    }
}

impl<T> Drop for Receiver<T> {
    fn drop(&mut self) {
        self.shared.queue.lock().state().receivers -= 1;
        self.shared.queue.grant_all(CLOSED);
    }
}

impl<T: fmt::Debug> fmt::Debug for Ref<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

impl<T> fmt::Debug for Sender<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sender").finish_non_exhaustive()
    }
}

impl<T> fmt::Debug for Receiver<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Receiver").field("seen", &self.seen).finish_non_exhaustive()
    }
}
