//! Channel that holds the latest value: `watch::channel(value)`.

use core::fmt;
use core::future::Future;
use core::ops::Deref;
use std::sync::{Arc, PoisonError};

use convoke_core::raw::sync::{RwLock, RwLockReadGuard};

use super::channel::SendError;
use super::until::until;
use super::wait_queue::WaitQueue;
use convoke_core::raw::Pause;

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
///             sender.send("running").expect("somebody looks");
///             checkpoint().await;
///             sender.send("done").expect("somebody looks");
///         });
///         let mut seen = vec![*receiver.look()];
///         while receiver.changed().await.is_ok() {
///             seen.push(*receiver.look());
///         }
///         seen
///     })
///     .await
/// });
/// assert_eq!(outcome, Outcome::Value(vec!["starting", "running", "done"]));
/// ```
pub fn channel<T>(value: T) -> (Sender<T>, Receiver<T>) {
    let state = State { version: 0, senders: 1, receivers: 1 };
    let shared = Arc::new(Shared { value: RwLock::new(value), queue: WaitQueue::new(state) });
    (Sender(shared.clone()), Receiver { shared, seen: 0 })
}

struct Shared<T> {
    /// Locked before the lock of the queue, where both are needed.
    value: RwLock<T>,
    queue: WaitQueue<State, (), 2>,
}

struct State {
    /// Counts the changes of the value.
    version: u64,
    senders: usize,
    receivers: usize,
}

/// Sending half of a watch channel: it changes the value. Clones change the same value.
pub struct Sender<T>(Arc<Shared<T>>);

/// Receiving half of a watch channel: it reads the value. A clone has seen the same version as the original.
pub struct Receiver<T> {
    shared: Arc<Shared<T>>,
    /// The version of the value that this receiver has seen.
    seen: u64,
}

/// A read guard on the value of a watch channel. The value does not change while it exists, so do not hold it
/// across an await.
#[must_use = "the value is locked for reading while this exists"]
pub struct Look<'a, T>(RwLockReadGuard<'a, T>);

/// Error of [`Receiver::changed`]: all senders are dropped, so the value will not change any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Closed;

impl<T> Shared<T> {
    fn read(&self) -> RwLockReadGuard<'_, T> {
        self.value.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn change<R>(&self, change: impl FnOnce(&mut T) -> R) -> R {
        let mut value = self.value.write().unwrap_or_else(PoisonError::into_inner);
        let result = change(&mut value);
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
        self.0.change(|before| core::mem::replace(before, value))
    }

    /// Changes the value in place.
    ///
    /// # Panics
    /// If `change` panics. The value then stays as it was left, and no receiver is woken.
    #[doc(alias = "send_modify")]
    pub fn modify<R>(&self, change: impl FnOnce(&mut T) -> R) -> R {
        self.0.change(change)
    }

    /// Locks the value for reading.
    #[doc(alias = "borrow")]
    pub fn look(&self) -> Look<'_, T> {
        Look(self.0.read())
    }

    /// Creates a receiver that has seen the current value.
    pub fn subscribe(&self) -> Receiver<T> {
        let mut locked = self.0.queue.lock();
        let state = locked.state();
        state.receivers += 1;
        let seen = state.version;
        drop(locked);
        Receiver { shared: self.0.clone(), seen }
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
    #[doc(alias = "borrow")]
    pub fn look(&self) -> Look<'_, T> {
        Look(self.shared.read())
    }

    /// Locks the value for reading and marks it as seen.
    #[doc(alias = "borrow_and_update")]
    pub fn look_and_update(&mut self) -> Look<'_, T> {
        let value = self.shared.read();
        // The read lock keeps senders from changing the value and its version in between.
        self.seen = self.shared.queue.lock().state().version;
        Look(value)
    }

    /// Returns true if the value was changed since this receiver has seen it.
    pub fn has_changed(&self) -> bool {
        self.shared.queue.lock().state().version != self.seen
    }

    /// Waits until there is a value that this receiver has not seen, and marks it as seen.
    ///
    /// - *Completes with* `Ok(())`; with [`Closed`] if the latest value is seen and all senders are dropped;
    ///   or as stopped if a stop was requested, even if there is a new value.
    /// - *If dropped*, it stops waiting, and the value is not marked as seen.
    /// - *Runs on* the calling task. It also works outside a task, but cannot be stopped there.
    #[track_caller]
    pub fn changed(&mut self) -> impl Future<Output = Result<(), Closed>> {
        let Self { shared, seen } = self;
        until(&shared.queue, CHANGE, Pause::here(), move |locked| {
            let state = locked.state();
            if state.version != *seen {
                *seen = state.version;
                return Some(Ok(()));
            }
            (state.senders == 0).then_some(Err(Closed))
        })
    }
}

impl<T> Deref for Look<'_, T> {
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
        Self { shared: self.shared.clone(), seen: self.seen }
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

impl<T: fmt::Debug> fmt::Debug for Look<'_, T> {
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

impl fmt::Display for Closed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("all senders are dropped")
    }
}

impl core::error::Error for Closed {}
