//! The side that sends: the same for one receiver and for many.

use core::fmt;
use std::sync::Arc;

#[cfg(doc)]
use super::SendError;
use super::queue::Queue;
use super::{SendMessage, TrySendError};

/// The side that sends. Clones send into the same channel.
pub struct Sender<T>(Arc<Queue<T>>);

impl<T> Sender<T> {
    /// The first sender, which the queue counts from the beginning.
    pub(crate) fn new(queue: Arc<Queue<T>>) -> Self {
        Self(queue)
    }

    /// Sends a message, and waits for room if there is none. Messages are received in the order in which they were
    /// sent.
    ///
    /// - *Completes with* nothing in particular; with the message in a [`SendError`] if the channel is closed, also
    ///   while it waits; or stopped: also if there is room, when a stop was asked for.
    /// - *If dropped* or stopped while it waits, the message is dropped with it; a message that was taken meanwhile is
    ///   sent.
    /// - *Runs on* the task; outside a task it waits as well, and cannot be stopped.
    #[inline]
    #[track_caller]
    pub fn send(&self, message: T) -> SendMessage<'_, T> {
        SendMessage::new(&self.0, message)
    }

    /// Sends a message, if there is room.
    pub fn try_send(&self, message: T) -> Result<(), TrySendError<T>> {
        self.0.try_send(message)
    }

    /// Closes the channel: nothing is sent from now on, by nobody. What was sent can be received.
    pub fn close(&self) {
        self.0.close();
    }

    /// Whether it is closed: by somebody, or because the receivers are gone.
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
