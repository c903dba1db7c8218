//! The sending half, which `mpsc` and `mpmc` share.

use core::fmt;
use std::sync::Arc;

#[cfg(doc)]
use super::SendError;
use super::queue::Queue;
use super::{SendMessage, TrySendError};

/// Sending half of a channel. Clones send into the same channel.
pub struct Sender<T>(Arc<Queue<T>>);

impl<T> Sender<T> {
    /// Creates the first sender, which the queue counts from the start.
    pub(crate) fn new(queue: Arc<Queue<T>>) -> Self {
        Self(queue)
    }

    /// Sends a message. Waits while the channel is full. Messages are received in the order in which they
    /// were sent.
    ///
    /// - *Completes with* `Ok(())`; with the message in a [`SendError`] if the channel is closed, also when
    ///   that happens while it waits; or as stopped if a stop was requested, even if the channel is not full.
    /// - *If dropped* or stopped while it waits, the message is dropped, unless a receiver has already taken
    ///   it.
    /// - *Runs on* the calling task. It also works outside a task, but cannot be stopped there.
    /// - *Panics* if polled after it completed.
    #[inline]
    #[track_caller]
    pub fn send(&self, message: T) -> SendMessage<'_, T> {
        SendMessage::new(&self.0, message)
    }

    /// Sends a message if the channel is not full.
    pub fn try_send(&self, message: T) -> Result<(), TrySendError<T>> {
        self.0.try_send(message)
    }

    /// Closes the channel: every later `send` fails. Messages that were sent before can still be received.
    pub fn close(&self) {
        self.0.close();
    }

    /// Returns true if the channel is closed, by `close` or because all receivers are dropped.
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

impl<T> Clone for Sender<T> {
    fn clone(&self) -> Self {
        self.0.add_sender();
        Self(self.0.clone())
    }
}

impl<T> Drop for Sender<T> {
    fn drop(&mut self) {
        self.0.remove_sender();
    }
}

impl<T> fmt::Debug for Sender<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Sender").field(&self.0).finish()
    }
}
