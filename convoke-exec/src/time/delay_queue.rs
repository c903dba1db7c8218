//! `DelayQueue`: items that come out when their time has come. One timer serves all of them.
//!
//! The timer waits for the first item. Each change that makes another item the first, or moves it, moves the
//! timer, with the waker of the task that waits. So a task that waits need not poll the queue again.

use core::fmt;
use core::future::Future;
use core::panic::Location;
use core::pin::Pin;
use core::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use convoke_core::raw::{Pause, budget};
use futures_core::Stream;

use super::When;
use super::delay_heap::DelayHeap;
pub use super::delay_heap::DelayKey;
use super::now::now;
use super::wait::{FAR, Wait};

/// A queue of items, each with a delay after which it comes out. Items whose time has come are received in the
/// order of their times, by [`next`](DelayQueue::next) or as a `Stream`; those of the same time in the order
/// of their insertion.
///
/// Use it where each item would need a sleep of its own: entries of a cache, sessions, retries. Inserting,
/// removing and moving an item cost a logarithm of the number of items, and one timer serves all of them.
/// Memory grows with the largest number of items, and is then used again.
///
/// ```
/// use std::time::Duration;
/// use convoke::prelude::*;
/// use convoke::time::DelayQueue;
///
/// let outcome = block_on(async {
///     let millisecond = Duration::from_millis(1);
///     let mut sessions = DelayQueue::new();
///     let alice = sessions.insert("alice", 2 * millisecond);
///     let bob = sessions.insert("bob", 1 * millisecond);
///     sessions.insert("carol", 3 * millisecond);
///     assert_eq!(sessions.remove(bob), Some("bob"));
///     sessions.reset(alice, 5 * millisecond);
///     let mut expired = Vec::new();
///     while let Some(session) = sessions.next().await {
///         expired.push(session.into_inner());
///     }
///     expired
/// });
/// assert_eq!(outcome, Outcome::Value(vec!["carol", "alice"]));
/// ```
pub struct DelayQueue<T> {
    items: DelayHeap<T>,
    /// The wait for the first item, in a box because the queue moves. Allocated by the first wait.
    wait: Option<Pin<Box<Wait>>>,
    /// Waits are shown at the line that has created the queue.
    location: &'static Location<'static>,
}

/// An item of a [`DelayQueue`] whose time has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Expired<T> {
    value: T,
    deadline: Instant,
    key: DelayKey,
}

// Items are never pinned.
impl<T> Unpin for DelayQueue<T> {}

impl<T> Expired<T> {
    /// Returns the item.
    pub fn into_inner(self) -> T {
        self.value
    }

    /// Borrows the item.
    pub fn get_ref(&self) -> &T {
        &self.value
    }

    /// Returns the time at which the item was due.
    pub fn deadline(&self) -> Instant {
        self.deadline
    }

    /// Returns the key that the item had.
    pub fn key(&self) -> DelayKey {
        self.key
    }
}

impl<T> DelayQueue<T> {
    /// Creates an empty queue.
    #[track_caller]
    pub fn new() -> Self {
        Self::with_capacity(0)
    }

    /// Creates an empty queue with memory for `capacity` items.
    #[track_caller]
    pub fn with_capacity(capacity: usize) -> Self {
        Self { items: DelayHeap::with_capacity(capacity), wait: None, location: Location::caller() }
    }

    /// Adds an item that comes out after `delay`, counted from now by the clock of the running task.
    ///
    /// # Panics
    /// If there are 2³² items.
    pub fn insert(&mut self, value: T, delay: Duration) -> DelayKey {
        self.insert_item(value, now().checked_add(delay))
    }

    /// Adds an item that comes out at `deadline`, or at once if that was already reached.
    ///
    /// # Panics
    /// If there are 2³² items.
    pub fn insert_at(&mut self, value: T, deadline: Instant) -> DelayKey {
        self.insert_item(value, Some(deadline))
    }

    fn insert_item(&mut self, value: T, at: Option<Instant>) -> DelayKey {
        let key = self.items.insert(value, at);
        self.changed(key);
        key
    }

    /// Removes an item. Returns `None` if it came out or was removed before.
    pub fn remove(&mut self, key: DelayKey) -> Option<T> {
        let was_first = self.items.first().is_some_and(|(first, _)| first == key);
        let (value, _) = self.items.remove(key)?;
        if was_first {
            self.move_timer();
        }
        Some(value)
    }

    /// Moves an item: it comes out after `delay`, counted from now by the clock of the running task. Returns
    /// false if it came out or was removed before.
    pub fn reset(&mut self, key: DelayKey, delay: Duration) -> bool {
        self.reset_item(key, now().checked_add(delay))
    }

    /// Moves an item: it comes out at `deadline`, or at once if that was already reached. Returns false if it
    /// came out or was removed before.
    pub fn reset_at(&mut self, key: DelayKey, deadline: Instant) -> bool {
        self.reset_item(key, Some(deadline))
    }

    fn reset_item(&mut self, key: DelayKey, at: Option<Instant>) -> bool {
        let was_first = self.items.first().is_some_and(|(first, _)| first == key);
        let found = self.items.set(key, at);
        if was_first {
            self.move_timer();
        } else if found {
            self.changed(key);
        }
        found
    }

    /// Borrows an item. Returns `None` if it came out or was removed before.
    pub fn get(&self, key: DelayKey) -> Option<&T> {
        self.items.get(key)
    }

    /// Returns the time at which an item comes out. Returns `None` if it came out or was removed before, and
    /// if an `Instant` cannot represent the time.
    pub fn deadline(&self, key: DelayKey) -> Option<Instant> {
        self.items.time_of(key).flatten()
    }

    /// Returns the key of the item that comes out next.
    pub fn peek(&self) -> Option<DelayKey> {
        self.items.first().map(|(key, _)| key)
    }

    /// Lets the item's place have been used this often before, for tests of keys. Returns the item's new key.
    #[cfg(feature = "testing")]
    #[doc(hidden)]
    pub fn set_generation(&mut self, key: DelayKey, generation: u32) -> DelayKey {
        self.items.set_generation(key, generation)
    }

    /// Removes all items.
    pub fn clear(&mut self) {
        while let Some((first, _)) = self.items.first() {
            drop(self.items.remove(first));
        }
        self.move_timer();
    }

    /// Returns the number of items, including those whose time has come and that were not received yet.
    pub fn len(&self) -> usize {
        self.items.len()
    }

    /// Returns true if there are no items.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Waits for the next item whose time comes.
    ///
    /// - *Completes with* the item, and not before its time; with `None` if the queue is empty; or as stopped
    ///   as soon as a stop is requested, even if the time of an item has come. The item then stays in the
    ///   queue.
    /// - *If dropped*, no item is lost.
    /// - *Runs on* the task that awaits it, by the clock of its executor.
    /// - *Panics* if polled outside a task.
    #[expect(clippy::should_implement_trait, reason = "the name that streams use")]
    pub fn next(&mut self) -> NextExpired<'_, T> {
        NextExpired { queue: self }
    }

    /// Polls for the next item whose time comes: [`next`](DelayQueue::next) for futures that are written by
    /// hand. If it returns `Pending`, the task of `cx` is woken at the time of the first item, also if that is
    /// another one by then.
    pub fn poll_expired(&mut self, cx: &mut Context<'_>) -> Poll<Option<Expired<T>>> {
        let Some((key, at)) = self.items.first() else {
            if Pause::is_stopped() || !budget::may_proceed(cx) {
                return Poll::Pending;
            }
            budget::spend();
            return Poll::Ready(None);
        };
        let wait = self.wait.get_or_insert_with(|| Box::pin(Wait::at(self.location)));
        // Items that never come out wait too, so that there is a timer to be moved.
        ready!(wait.as_mut().poll("a delay queue", |now| at.or_else(|| now.checked_add(FAR)), cx));
        wait.as_mut().reset();
        let Some((value, at)) = self.items.remove(key) else {
            unreachable!("the first item was found above")
        };
        let deadline = at.unwrap_or_else(now);
        Poll::Ready(Some(Expired { value, deadline, key }))
    }

    /// Moves the timer if this item, which is new or has another time, is the first.
    fn changed(&mut self, key: DelayKey) {
        if self.items.first().is_some_and(|(first, _)| first == key) {
            self.move_timer();
        }
    }

    /// Moves the timer to the time of the first item. Without a task that waits, there is nothing to do.
    fn move_timer(&mut self) {
        let first = self.items.first();
        if let Some(wait) = &mut self.wait {
            match first {
                Some((_, Some(at))) => wait.as_mut().move_to(When::At(at)),
                _ => wait.as_mut().reset(),
            }
        }
    }
}

/// Future of [`DelayQueue::next`].
#[must_use = "futures do nothing until they are awaited"]
pub struct NextExpired<'a, T> {
    queue: &'a mut DelayQueue<T>,
}

impl<T> Future for NextExpired<'_, T> {
    type Output = Option<Expired<T>>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Expired<T>>> {
        self.queue.poll_expired(cx)
    }
}

impl<T> Drop for NextExpired<'_, T> {
    fn drop(&mut self) {
        if let Some(wait) = &mut self.queue.wait {
            wait.as_mut().reset();
        }
    }
}

/// Stream of the items whose time has come: each is the result of [`DelayQueue::next`]. It ends while the
/// queue is empty, and goes on when an item is inserted.
impl<T> Stream for DelayQueue<T> {
    type Item = Expired<T>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Expired<T>>> {
        self.poll_expired(cx)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.len(), None)
    }
}

impl<T> Default for DelayQueue<T> {
    #[track_caller]
    fn default() -> Self {
        Self::new()
    }
}

impl<T> fmt::Debug for DelayQueue<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DelayQueue").field("items", &self.len()).finish_non_exhaustive()
    }
}

impl<T> fmt::Debug for NextExpired<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NextExpired").field("queue", &self.queue).finish()
    }
}
