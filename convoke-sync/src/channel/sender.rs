//! The sending half, which `mpsc` and `mpmc` share.

use core::fmt;
use core::future::Future;
use std::sync::Arc;

use super::super::blocking;
use super::queue::Queue;
use super::reserve::try_reserve;
use super::{OwnedSendPermit, Reserve, SendError, SendMessage, SendPermit, TrySendError};
use convoke_core::raw::Pause;

/// Sending half of a channel. Clones send into the same channel.
pub struct Sender<T>(Arc<Queue<T>>);

impl<T> Sender<T> {
    /// Creates the first sender, which the queue counts from the start.
    pub(crate) fn new(queue: Arc<Queue<T>>) -> Self {
        Self(queue)
    }

    /// Returns the shared part, for permits.
    pub(super) fn queue(&self) -> &Queue<T> {
        &self.0
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

    /// Sends a message from a thread that runs no tasks. Blocks the thread while the channel is full. Returns
    /// the message in the error if the channel is closed, also when that happens meanwhile. Nothing stops it:
    /// close the channel to end the wait.
    ///
    /// # Panics
    /// In a task, and on the thread of a run loop: await [`send`](Sender::send) there.
    ///
    /// ```
    /// use convoke::prelude::*;
    /// use convoke::sync::mpsc;
    ///
    /// let (sender, mut receiver) = mpsc::channel(1);
    /// let thread = std::thread::spawn(move || {
    ///     for n in 1..=3 {
    ///         sender.blocking_send(n).expect("there is a receiver");
    ///     }
    /// });
    /// let outcome = block_on(async {
    ///     let mut sum = 0;
    ///     while let Some(n) = receiver.recv().await {
    ///         sum += n;
    ///     }
    ///     sum
    /// });
    /// thread.join().unwrap();
    /// assert_eq!(outcome, Outcome::Value(6));
    /// ```
    #[track_caller]
    pub fn blocking_send(&self, message: T) -> Result<(), SendError<T>> {
        blocking::wait_for("blocking_send", "send", self.send(message))
    }

    /// Reserves a slot for one message. Waits while the channel is full. Use it if creating the message is
    /// costly, or must not happen when there is no room for it.
    ///
    /// - *Completes with* a permit that holds the slot; with a [`SendError`] if the channel is closed, also
    ///   when that happens while it waits; or as stopped if a stop was requested, even if the channel is not
    ///   full.
    /// - *If dropped* or stopped, it stops waiting. A slot that was already reserved for it goes to the next
    ///   sender.
    /// - *Runs on* the calling task. It also works outside a task, but cannot be stopped there.
    ///
    /// ```
    /// use convoke::prelude::*;
    /// use convoke::sync::mpsc;
    ///
    /// let outcome = block_on(async {
    ///     let (sender, mut receiver) = mpsc::channel(1);
    ///     let permit = sender.reserve().await.expect("there is a receiver");
    ///     assert!(sender.try_send("no room").is_err());
    ///     permit.send("reserved");
    ///     receiver.recv().await
    /// });
    /// assert_eq!(outcome, Outcome::Value(Some("reserved")));
    /// ```
    #[track_caller]
    pub fn reserve(&self) -> Reserve<'_, T> {
        Reserve::new(&self.0, Pause::here())
    }

    /// Reserves a slot for one message, with a permit that owns a sender, so that it can be moved into a
    /// child.
    ///
    /// - *Completes with*, *If dropped*, *Runs on*: as for [`reserve`](Sender::reserve).
    #[track_caller]
    pub fn reserve_owned(&self) -> impl Future<Output = Result<OwnedSendPermit<T>, SendError<()>>> + use<T> {
        let (sender, pause) = (self.clone(), Pause::here());
        async move {
            let permit = Reserve::new(&sender.0, pause).await?;
            Ok(OwnedSendPermit::new(permit, sender.clone()))
        }
    }

    /// Reserves a slot for one message if the channel is not full.
    pub fn try_reserve(&self) -> Result<SendPermit<'_, T>, TrySendError<()>> {
        try_reserve(&self.0)
    }

    /// Reserves a slot for one message if the channel is not full. The permit owns a sender.
    pub fn try_reserve_owned(&self) -> Result<OwnedSendPermit<T>, TrySendError<()>> {
        self.try_reserve().map(|permit| OwnedSendPermit::new(permit, self.clone()))
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

    /// Returns the number of slots, filled, reserved and free, or `usize::MAX` if the channel is unbounded.
    #[doc(alias = "max_capacity")]
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
