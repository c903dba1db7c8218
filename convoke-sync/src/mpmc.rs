//! Many senders, many receivers: `mpmc::channel(capacity)`.

use core::fmt;
use std::sync::Arc;

use super::channel::Queue;
pub use super::channel::{Receive, SendError, SendMessage, Sender, TryReceiveError, TrySendError};

/// A channel with room for so many messages: who sends more waits.
///
/// Each message goes to one of the receivers; they are served in the order in which they began to wait, but one that
/// does not have to wait may overtake.
///
/// It is closed by either side, or when all of a side are gone. Nothing can be sent then; what was sent is received.
///
/// # Panics
/// If the capacity is 0.
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
///             sender.send(n).await.expect("somebody receives");
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
    (Sender::new(queue.clone()), Receiver(queue))
}

/// A channel without a bound: sending never waits, and memory is the limit. Where the receiver may be slower than the
/// senders, that is for a short while only.
pub fn unbounded<T>() -> (Sender<T>, Receiver<T>) {
    channel(usize::MAX)
}

/// The side that receives. Clones receive from the same channel.
pub struct Receiver<T>(Arc<Queue<T>>);

impl<T> Receiver<T> {
    /// Receives the next message, and waits for one if there is none.
    ///
    /// - *Completes with* the message; `None` if the channel is closed and empty; or stopped: also if there is a
    ///   message, when a stop was asked for. It stays in the channel then.
    /// - *If dropped*, it does not wait any more; a message that it was given stays in the channel.
    /// - *Runs on* the task; outside a task it waits as well, and cannot be stopped.
    #[inline]
    #[track_caller]
    pub fn recv(&self) -> Receive<'_, T> {
        Receive::new(&self.0)
    }

    /// Receives the next message, if there is one.
    pub fn try_recv(&self) -> Result<T, TryReceiveError> {
        self.0.try_receive()
    }

    /// Closes the channel: nothing is sent from now on. What was sent can be received.
    pub fn close(&self) {
        self.0.close();
    }

    /// Whether it is closed: by somebody, or because the senders are gone. There may still be messages in it.
    pub fn is_closed(&self) -> bool {
        self.0.is_closed()
    }

    /// How many messages are in it, this moment.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many there is room for; `usize::MAX` if that has no bound.
    pub fn capacity(&self) -> usize {
        self.0.capacity()
    }
}

impl<T> Clone for Receiver<T> {
    fn clone(&self) -> Self {
        self.0.add_receiver();
        Self(self.0.clone())
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
