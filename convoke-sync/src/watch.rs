//! The latest value, for all who look: `watch::channel(value)`.

use core::fmt;
use core::future::Future;
use core::ops::Deref;
use std::sync::{Arc, PoisonError};

use convoke_core::raw::sync::{RwLock, RwLockReadGuard};

use super::channel::SendError;
use super::until::until;
use super::wait_queue::WaitQueue;
use convoke_core::raw::Pause;

/// The list of those who wait for a change.
const CHANGE: usize = 0;
/// The list of those who wait until nobody looks any more.
const NOBODY: usize = 1;

/// A value that is replaced, and looked at: who is slow sees the latest one, and not those in between.
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
    /// Taken before the lock of the queue, where both are needed.
    value: RwLock<T>,
    queue: WaitQueue<State, (), 2>,
}

struct State {
    /// How often the value was changed.
    version: u64,
    senders: usize,
    receivers: usize,
}

/// The side that changes the value. Clones change the same one.
pub struct Sender<T>(Arc<Shared<T>>);

/// The side that looks. Clones look at the same value, and have seen what this one has seen.
pub struct Receiver<T> {
    shared: Arc<Shared<T>>,
    /// The version that it knows.
    seen: u64,
}

/// The value of a watch channel, which does not change while this exists: not to be kept across an await.
#[must_use = "the value is looked at while this exists"]
pub struct Look<'a, T>(RwLockReadGuard<'a, T>);

/// All senders are gone: the value will not change any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Closed;

impl<T> Shared<T> {
    fn look(&self) -> RwLockReadGuard<'_, T> {
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
    /// Replaces the value. If nobody can look at it any more, it is given back.
    pub fn send(&self, value: T) -> Result<(), SendError<T>> {
        if self.is_closed() {
            return Err(SendError(value));
        }
        drop(self.replace(value));
        Ok(())
    }

    /// Replaces the value, and returns what was there, whether somebody looks or not.
    #[doc(alias = "send_replace")]
    pub fn replace(&self, value: T) -> T {
        self.0.change(|before| core::mem::replace(before, value))
    }

    /// Changes the value in place.
    ///
    /// # Panics
    /// If `change` does. The value stays as it was left, and nobody is told.
    #[doc(alias = "send_modify")]
    pub fn modify<R>(&self, change: impl FnOnce(&mut T) -> R) -> R {
        self.0.change(change)
    }

    /// The value as it is.
    #[doc(alias = "borrow")]
    pub fn look(&self) -> Look<'_, T> {
        Look(self.0.look())
    }

    /// Another one who looks, and knows the value as it is now.
    pub fn subscribe(&self) -> Receiver<T> {
        let mut locked = self.0.queue.lock();
        let state = locked.state();
        state.receivers += 1;
        let seen = state.version;
        drop(locked);
        Receiver { shared: self.0.clone(), seen }
    }

    /// Whether nobody looks.
    pub fn is_closed(&self) -> bool {
        self.0.queue.lock().state().receivers == 0
    }

    /// Waits until nobody looks.
    ///
    /// - *Completes with* nothing in particular, or stopped.
    /// - *If dropped*, it does not wait any more.
    /// - *Runs on* the task; outside a task it waits as well, and cannot be stopped.
    #[track_caller]
    pub fn closed(&self) -> impl Future<Output = ()> {
        until(&self.0.queue, NOBODY, Pause::here(), |locked| (locked.state().receivers == 0).then_some(()))
    }
}

impl<T> Receiver<T> {
    /// The value as it is. Whether it counts as seen does not change.
    #[doc(alias = "borrow")]
    pub fn look(&self) -> Look<'_, T> {
        Look(self.shared.look())
    }

    /// The value as it is, which counts as seen from now on.
    #[doc(alias = "borrow_and_update")]
    pub fn look_and_update(&mut self) -> Look<'_, T> {
        let value = self.shared.look();
        // Nobody changes it meanwhile.
        self.seen = self.shared.queue.lock().state().version;
        Look(value)
    }

    /// Whether there is a value that was not seen.
    pub fn has_changed(&self) -> bool {
        self.shared.queue.lock().state().version != self.seen
    }

    /// Waits for a value that was not seen. It counts as seen then: the next call waits for another one.
    ///
    /// - *Completes with* nothing in particular; with [`Closed`] if the last value was seen and all senders are gone;
    ///   or stopped: also if there is a new value, when a stop was asked for.
    /// - *If dropped*, it does not wait any more. The value counts as not seen.
    /// - *Runs on* the task; outside a task it waits as well, and cannot be stopped.
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
        self.shared.queue.grant_all(NOBODY);
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
        f.write_str("all senders are gone")
    }
}

impl core::error::Error for Closed {}
