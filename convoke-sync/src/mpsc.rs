//! Multi-producer, single-consumer channel: `mpsc::channel(capacity)`.

use core::fmt;
use std::sync::Arc;

use super::channel::Queue;
pub use super::channel::{Receive, SendError, SendMessage, Sender, TryReceiveError, TrySendError};

/// Creates a channel that holds up to `capacity` messages. When it is full, `send` waits.
///
/// The channel closes when either half calls `close`, or when all senders or the receiver are dropped.
/// Sending then fails, but messages that were sent before can still be received.
///
/// # Panics
/// If `capacity` is 0.
///
/// ```
/// use convoke::prelude::*;
/// use convoke::sync::mpsc;
///
/// let outcome = block_on(async {
///     scope(async |s| {
///         let (sender, mut receiver) = mpsc::channel(4);
///         for n in 0..3 {
///             let sender = sender.clone();
///             s.spawn(async move {
///                 sender.send(n).await.expect("there is a receiver");
///             });
///         }
///         drop(sender);
///         let mut sum = 0;
///         while let Some(n) = receiver.recv().await {
///             sum += n;
///         }
///         sum
///     })
///     .await
/// });
/// assert_eq!(outcome, Outcome::Value(3));
/// ```
#[track_caller]
pub fn channel<T>(capacity: usize) -> (Sender<T>, Receiver<T>) {
    let queue = Arc::new(Queue::new(capacity, true));
    (Sender::new(queue.clone()), Receiver(queue))
}

/// Creates a channel without a bound: `send` never waits. The queue grows without limit if the receiver stays
/// slower than the senders, so use it only for short bursts.
#[doc(alias = "unbounded_channel")]
pub fn unbounded<T>() -> (Sender<T>, Receiver<T>) {
    channel(usize::MAX)
}

/// Receiving half of a single-consumer channel.
pub struct Receiver<T>(Arc<Queue<T>>);

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
    pub fn recv(&mut self) -> Receive<'_, T> {
        Receive::new(&self.0)
    }

    /// Receives the next message, if there is one.
    pub fn try_recv(&mut self) -> Result<T, TryReceiveError> {
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

    /// Returns the capacity, or `usize::MAX` if the channel is unbounded.
    pub fn capacity(&self) -> usize {
        self.0.capacity()
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
