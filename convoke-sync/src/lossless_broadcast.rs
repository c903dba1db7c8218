//! Channel in which every receiver gets every message, and the slowest one holds up the senders:
//! `lossless_broadcast::channel(capacity)`.
//!
//! A message stays in the channel until every receiver that was subscribed when it was sent has received it.
//! No message is lost, and memory stays bounded. Use [`broadcast`](super::broadcast) if senders must not wait:
//! there a slow receiver misses messages.

use core::fmt;
use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll};

use convoke_core::raw::{Pause, wake_if_any};
use futures_core::Stream;

use super::blocking;
use super::broadcast_halves::{Reader, Received, Writer, accessors, close, halves, receive};
use super::broadcast_ring::{RECEIVERS, Ring, SENDERS, Shelf, shelve, unshelve};
pub use super::channel::{SendError, TryRecvError, TrySendError};
use super::until::{Guard, until, until_turn};

/// Creates a channel that holds up to `capacity` messages that some receiver has not received yet. When it is
/// full, `send` waits.
///
/// The channel closes when either half calls `close` or when all senders are dropped. Sending then fails, but
/// messages that were sent before can still be received.
///
/// # Panics
/// If `capacity` is 0.
///
/// ```
/// use convoke::prelude::*;
/// use convoke::sync::lossless_broadcast;
///
/// let outcome = block_on(async {
///     scope(async |s| {
///         let (sender, mut receiver) = lossless_broadcast::channel(2);
///         let mut other = sender.subscribe();
///         s.spawn(async move {
///             for n in 1..=3 {
///                 sender.send(n).await.expect("there is a receiver");
///             }
///         });
///         let mut sum = 0;
///         while let Some(n) = receiver.recv().await {
///             assert_eq!(other.recv().await, Some(n));
///             sum += n;
///         }
///         sum
///     })
///     .await
/// });
/// assert_eq!(outcome, Outcome::Value(6));
/// ```
#[track_caller]
pub fn channel<T>(capacity: usize) -> (Sender<T>, Receiver<T>) {
    let (writer, reader) = halves(capacity);
    (Sender(writer), Receiver(reader))
}

/// Sending half of a lossless broadcast channel. Clones send into the same channel.
pub struct Sender<T>(Writer<T>);

/// Receiving half of a lossless broadcast channel. A clone receives every message that the original has not
/// received yet.
pub struct Receiver<T>(Reader<T>);

/// Pushes the message, or returns why it cannot.
fn offer<T>(locked: &mut Guard<'_, Ring<T>>, shelf: &mut Option<Shelf<T>>) -> Result<(), TrySendError<()>> {
    let ring = locked.state();
    if ring.is_over() {
        return Err(TrySendError::Closed(()));
    }
    if ring.is_full() {
        return Err(TrySendError::Full(()));
    }
    shelf.take().into_iter().for_each(|shelf| ring.push(shelf));
    Ok(())
}

impl<T> Sender<T> {
    /// Sends a message to all current receivers. Waits while the channel is full.
    ///
    /// - *Completes with* `Ok(())`; with the message in a [`SendError`] if the channel is closed or has no
    ///   receivers, also when that happens while it waits; or as stopped if a stop was requested, even if the
    ///   channel is not full.
    /// - *If dropped* or stopped while it waits, the message is dropped.
    /// - *Runs on* the calling task. It also works outside a task, but cannot be stopped there.
    #[track_caller]
    pub fn send(&self, message: T) -> impl Future<Output = Result<(), SendError<T>>> {
        let (shared, pause) = (&*self.0.0, Pause::here());
        async move {
            let mut shelf = Some(shelve(shared, message));
            until_turn(shared, SENDERS, pause, |locked| match offer(locked, &mut shelf) {
                Err(TrySendError::Full(())) => None,
                Err(TrySendError::Closed(())) | Ok(()) => Some(()),
            })
            .await;
            self.sent(shelf).map_err(|message| SendError(message.into_message()))
        }
    }

    /// Sends a message from a thread that runs no tasks. Blocks the thread while the channel is full. Returns
    /// the message in the error if the channel is closed or has no receivers. Nothing stops it.
    ///
    /// # Panics
    /// In a task, and on the thread of a run loop: await [`send`](Sender::send) there.
    #[track_caller]
    pub fn blocking_send(&self, message: T) -> Result<(), SendError<T>> {
        blocking::wait_for("blocking_send", "send", self.send(message))
    }

    /// Sends a message to all current receivers if the channel is not full.
    pub fn try_send(&self, message: T) -> Result<(), TrySendError<T>> {
        let mut shelf = Some(shelve(&self.0.0, message));
        let offered = offer(&mut self.0.0.lock(), &mut shelf);
        match (offered, shelf) {
            (Err(TrySendError::Full(())), Some(shelf)) => Err(TrySendError::Full(unshelve(shelf))),
            (_, shelf) => self.sent(shelf),
        }
    }

    /// Finishes an attempt to send: wakes the receivers, or returns the message if it was not sent.
    fn sent(&self, unsent: Option<Shelf<T>>) -> Result<(), TrySendError<T>> {
        if let Some(shelf) = unsent {
            return Err(TrySendError::Closed(unshelve(shelf)));
        }
        self.0.0.grant_all(RECEIVERS);
        Ok(())
    }
}

/// Wakes the sender, if any, and returns the message, or `None` at the end. Called without the lock.
fn into_message<T: Clone>(got: Received<T>) -> Option<T> {
    match got {
        Received::Message(message, waker) => {
            wake_if_any(waker);
            Some(message.into_message())
        }
        Received::Closed => None,
        Received::Missed(_) => unreachable!("a message stays until all have received it"),
    }
}

impl<T: Clone> Receiver<T> {
    /// Receives the next message. Waits while there is none.
    ///
    /// - *Completes with* the message; with `None` if the channel is closed and this receiver has received
    ///   all messages; or as stopped if a stop was requested, even if there is a message. The message then
    ///   stays in the channel.
    /// - *If dropped*, it stops waiting, and no message counts as received.
    /// - *Runs on* the calling task. It also works outside a task, but cannot be stopped there.
    /// - *Panics* if cloning the message panics.
    #[track_caller]
    pub fn recv(&mut self) -> impl Future<Output = Option<T>> {
        let pause = Pause::here();
        let (shared, next) = self.0.parts();
        let received = until(shared, RECEIVERS, pause, move |locked| receive(locked, next));
        async move { into_message(received.await) }
    }

    /// Receives the next message on a thread that runs no tasks. Blocks the thread while there is none.
    /// Returns `None` if the channel is closed and this receiver has received all messages.
    ///
    /// # Panics
    /// In a task, and on the thread of a run loop: await [`recv`](Receiver::recv) there. If cloning the
    /// message panics.
    #[track_caller]
    pub fn blocking_recv(&mut self) -> Option<T> {
        blocking::wait_for("blocking_recv", "recv", self.recv())
    }

    /// Receives the next message, if there is one.
    ///
    /// # Panics
    /// If cloning the message panics.
    pub fn try_recv(&mut self) -> Result<T, TryRecvError> {
        let got = self.0.try_receive().ok_or(TryRecvError::Empty)?;
        into_message(got).ok_or(TryRecvError::Closed)
    }
}

impl<T> Receiver<T> {
    /// Returns the number of messages that this receiver has not received yet.
    pub fn len(&self) -> usize {
        self.0.len()
    }
}

/// Stream of messages: each item is the result of [`Receiver::recv`]. A poll that is stopped takes nothing.
/// The first one allocates the memory with which the stream waits, and the rest allocate nothing.
impl<T: Clone> Stream for Receiver<T> {
    type Item = T;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<T>> {
        self.0.poll_receive(cx).map(into_message)
    }
}

accessors!();
