//! Multi-producer, multi-consumer channel: `mpmc::channel(capacity)`.

use core::fmt;
use core::pin::Pin;
use core::task::{Context, Poll};
use std::sync::Arc;

use convoke_core::raw::wake_if_any;
use futures_core::Stream;

use super::blocking;
use super::channel::{LISTENERS, LISTS, Queue};
pub use super::channel::{
    OwnedSendPermit, Receive, Reserve, SendError, SendMessage, SendPermit, Sender, TryRecvError, TrySendError,
};
use super::seat::Seat;
use super::until::poll_seat;

/// Creates a channel that holds up to `capacity` messages. When it is full, `send` waits.
///
/// Each message goes to one receiver. Waiting receivers are served in the order in which they began to wait,
/// but a `recv` that finds a message at once may overtake them.
///
/// The channel closes when either half calls `close`, or when all senders or all receivers are dropped.
/// Sending then fails, but messages that were sent before can still be received.
///
/// # Panics
/// If `capacity` is 0.
///
/// ```
/// use convoke::prelude::*;
/// use convoke::sync::mpmc;
///
/// let outcome = block_on(async {
///     scope(async |s| {
///         let (sender, receiver) = mpmc::channel(4);
///         let workers: Vec<_> = (0..2)
///             .map(|_| {
///                 let jobs = receiver.clone();
///                 s.spawn_future(async move {
///                     let mut sum = 0;
///                     while let Some(n) = jobs.recv().await {
///                         sum += n;
///                     }
///                     sum
///                 })
///             })
///             .collect();
///         for n in 1..=10 {
///             sender.send(n).await.expect("there is a receiver");
///         }
///         drop(sender);
///         let mut sum = 0;
///         for worker in workers {
///             sum += worker.await;
///         }
///         sum
///     })
///     .await
/// });
/// assert_eq!(outcome, Outcome::Value(55));
/// ```
#[track_caller]
pub fn channel<T>(capacity: usize) -> (Sender<T>, Receiver<T>) {
    let queue = Arc::new(Queue::new(capacity, false));
    (Sender::new(queue.clone()), Receiver(Seat::new(queue)))
}

/// Creates a channel without a bound: `send` never waits. The queue grows without limit if the receivers stay
/// slower than the senders, so use it only for short bursts.
#[track_caller]
pub fn unbounded<T>() -> (Sender<T>, Receiver<T>) {
    channel(usize::MAX)
}

/// Receiving half of a multi-consumer channel. Clones receive from the same channel.
pub struct Receiver<T>(Seat<Queue<T>, LISTS>);

impl<T> Receiver<T> {
    /// Receives the next message. Waits while there is none.
    ///
    /// - *Completes with* the message; with `None` if the channel is closed and empty; or as stopped if a
    ///   stop was requested, even if there is a message. The message then stays in the channel.
    /// - *If dropped*, it stops waiting. A message that was already handed to it goes back to the front of
    ///   the channel.
    /// - *Runs on* the calling task. It also works outside a task, but cannot be stopped there.
    #[inline]
    #[track_caller]
    pub fn recv(&self) -> Receive<'_, T> {
        Receive::new(&self.0)
    }

    /// Receives the next message on a thread that runs no tasks. Blocks the thread while there is none.
    /// Returns `None` if the channel is closed and empty. Nothing stops it: close the channel to end the wait.
    ///
    /// # Panics
    /// In a task, and on the thread of a run loop: await [`recv`](Receiver::recv) there.
    ///
    /// ```
    /// use convoke::prelude::*;
    /// use convoke::sync::mpmc;
    ///
    /// let (sender, receiver) = mpmc::channel(1);
    /// let thread = std::thread::spawn(move || {
    ///     let mut sum = 0;
    ///     while let Some(n) = receiver.blocking_recv() {
    ///         sum += n;
    ///     }
    ///     sum
    /// });
    /// let outcome = block_on(async move {
    ///     for n in 1..=3 {
    ///         sender.send(n).await.expect("there is a receiver");
    ///     }
    /// });
    /// assert_eq!(outcome, Outcome::Value(()));
    /// assert_eq!(thread.join().unwrap(), 6);
    /// ```
    #[track_caller]
    pub fn blocking_recv(&self) -> Option<T> {
        blocking::wait_for("blocking_recv", "recv", self.recv())
    }

    /// Receives the next message, if there is one.
    pub fn try_recv(&self) -> Result<T, TryRecvError> {
        self.0.try_receive()
    }

    /// Closes the channel: every later `send` fails. Messages that were sent before can still be received.
    pub fn close(&self) {
        self.0.close();
    }

    /// Returns true if the channel is closed, by `close` or because all senders are dropped. It may still
    /// hold messages.
    pub fn is_closed(&self) -> bool {
        self.0.is_closed()
    }

    /// Returns the number of messages in the channel at this moment.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns true if the channel holds no message at this moment.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the number of slots, filled, reserved and free, or `usize::MAX` if the channel is unbounded.
    #[doc(alias = "max_capacity")]
    pub fn capacity(&self) -> usize {
        self.0.capacity()
    }
}

impl<T> Clone for Receiver<T> {
    fn clone(&self) -> Self {
        self.0.add_receiver();
        Self(self.0.another())
    }
}

/// Stream of messages: each item is the result of [`Receiver::recv`]. A poll that is stopped takes nothing.
/// The first one allocates the memory with which the stream waits, and the rest allocate nothing.
///
/// Each message wakes all receivers that are polled as streams, and one of them gets it. For many receivers of
/// one channel, [`recv`](Receiver::recv) is cheaper: it wakes one.
///
/// ```
/// use std::pin::pin;
/// use convoke::prelude::*;
/// use convoke::sync::mpmc;
/// use convoke::task::map_concurrent;
///
/// let outcome = block_on(async {
///     let (sender, receiver) = mpmc::channel(4);
///     for n in 1..=3 {
///         sender.send(n).await.expect("there is a receiver");
///     }
///     drop(sender);
///     let mut doubled = pin!(map_concurrent(receiver, 2, async |n| 2 * n));
///     let mut sum = 0;
///     while let Some(n) = doubled.next().await {
///         sum += n;
///     }
///     sum
/// });
/// assert_eq!(outcome, Outcome::Value(12));
/// ```
impl<T> Stream for Receiver<T> {
    type Item = T;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<T>> {
        let received = poll_seat(&mut self.0, LISTENERS, Queue::take_listening, cx);
        received.map(|(message, sender)| {
            wake_if_any(sender);
            message
        })
    }
}

impl<T> Drop for Receiver<T> {
    fn drop(&mut self) {
        self.0.remove_receiver();
    }
}

impl<T> fmt::Debug for Receiver<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Receiver").field(&self.0).finish()
    }
}
