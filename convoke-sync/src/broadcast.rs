//! Channel in which every receiver gets every message that it is fast enough for:
//! `broadcast::channel(capacity)`.
//!
//! Sending never waits. When the channel is full, the oldest message is dropped, and receivers that have not
//! received it learn how many they have missed. Use [`lossless_broadcast`](super::lossless_broadcast) if no
//! receiver may miss a message: there the slowest receiver holds up the senders.

use core::fmt;
use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll};

use convoke_core::raw::Pause;
use futures_core::Stream;

use super::blocking;
use super::broadcast_halves::{Reader, Received, Writer, accessors, close, halves, receive, subscribe};
use super::broadcast_ring::{RECEIVERS, shelve, unshelve};
pub use super::channel::SendError;
use super::until::until;

/// Creates a channel that holds up to `capacity` messages that some receiver has not received yet.
///
/// The channel closes when either half calls `close` or when all senders are dropped. Sending then fails, but
/// messages that were sent before can still be received.
///
/// # Panics
/// If `capacity` is 0.
///
/// ```
/// use convoke::prelude::*;
/// use convoke::sync::broadcast::{self, RecvError};
///
/// let outcome = block_on(async {
///     let (sender, mut fast) = broadcast::channel(2);
///     let mut slow = sender.subscribe();
///     for n in 1..=3 {
///         assert_eq!(sender.send(n), Ok(2));
///         assert_eq!(fast.recv().await, Ok(n));
///     }
///     drop(sender);
///     // There is room for two messages, and the first one was dropped.
///     assert_eq!(slow.recv().await, Err(RecvError::Lagged(1)));
///     assert_eq!((slow.recv().await, slow.recv().await), (Ok(2), Ok(3)));
///     assert_eq!(slow.recv().await, Err(RecvError::Closed));
/// });
/// assert_eq!(outcome, Outcome::Value(()));
/// ```
#[track_caller]
pub fn channel<T>(capacity: usize) -> (Sender<T>, Receiver<T>) {
    let (writer, reader) = halves(capacity);
    (Sender(writer), Receiver(reader))
}

/// Sending half of a broadcast channel. Clones send into the same channel.
pub struct Sender<T>(Writer<T>);

/// Receiving half of a broadcast channel. A clone receives every message that the original has not received
/// yet.
pub struct Receiver<T>(Reader<T>);

/// Error of [`Receiver::recv`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecvError {
    /// This receiver was too slow, and missed this many messages. The next call receives the oldest one that is
    /// still in the channel.
    Lagged(u64),
    /// The channel is closed, and this receiver has received all messages.
    Closed,
}

/// Error of [`Receiver::try_recv`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TryRecvError {
    /// There is no message now, but one may still be sent.
    Empty,
    /// This receiver was too slow, and missed this many messages. The next call receives the oldest one that is
    /// still in the channel.
    Lagged(u64),
    /// The channel is closed, and this receiver has received all messages.
    Closed,
}

/// Error of a [`Receiver`] as a stream: it was too slow, and missed this many messages. The next item is the
/// oldest one that is still in the channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lagged(pub u64);

impl<T> Sender<T> {
    /// Sends a message to all current receivers, and returns their number. If the channel is full, its oldest
    /// message is dropped. Returns the message in the error if the channel is closed or has no receivers.
    pub fn send(&self, message: T) -> Result<usize, SendError<T>> {
        let shelf = shelve(&self.0.0, message);
        let mut locked = self.0.0.lock();
        let ring = locked.state();
        if ring.is_over() {
            drop(locked);
            return Err(SendError(unshelve(shelf)));
        }
        let evicted = if ring.is_full() { ring.evict() } else { None };
        ring.push(shelf);
        let receivers = ring.receivers;
        drop(locked);
        self.0.0.grant_all(RECEIVERS);
        drop(evicted);
        Ok(receivers)
    }
}

/// Returns the message, which it may have to clone. Called without the lock.
fn into_message<T: Clone>(got: Received<T>) -> Result<T, RecvError> {
    match got {
        // No sender ever waits.
        Received::Message(message, _) => Ok(message.into_message()),
        Received::Missed(missed) => Err(RecvError::Lagged(missed)),
        Received::Closed => Err(RecvError::Closed),
    }
}

impl<T: Clone> Receiver<T> {
    /// Receives the next message. Waits while there is none.
    ///
    /// - *Completes with* the message; with [`RecvError::Lagged`] if messages were dropped before this
    ///   receiver has received them; with [`RecvError::Closed`] if the channel is closed and it has received
    ///   all messages; or as stopped if a stop was requested, even if there is a message. The message then
    ///   stays in the channel.
    /// - *If dropped*, it stops waiting, and no message counts as received.
    /// - *Runs on* the calling task. It also works outside a task, but cannot be stopped there.
    /// - *Panics* if cloning the message panics.
    ///
    /// ```
    /// use convoke::prelude::*;
    /// use convoke::sync::broadcast::{self, RecvError};
    ///
    /// let outcome = block_on(async {
    ///     let (sender, mut receiver) = broadcast::channel(16);
    ///     sender.send("hello").expect("there is a receiver");
    ///     drop(sender);
    ///     let mut seen = Vec::new();
    ///     loop {
    ///         match receiver.recv().await {
    ///             Ok(message) => seen.push(message),
    ///             Err(RecvError::Lagged(missed)) => println!("missed {missed} messages"),
    ///             Err(RecvError::Closed) => break seen,
    ///         }
    ///     }
    /// });
    /// assert_eq!(outcome, Outcome::Value(vec!["hello"]));
    /// ```
    #[track_caller]
    pub fn recv(&mut self) -> impl Future<Output = Result<T, RecvError>> {
        let pause = Pause::here();
        let (shared, next) = self.0.parts();
        let received = until(shared, RECEIVERS, pause, move |locked| receive(locked, next));
        async move { into_message(received.await) }
    }

    /// Receives the next message on a thread that runs no tasks. Blocks the thread while there is none.
    ///
    /// # Panics
    /// In a task, and on the thread of a run loop: await [`recv`](Receiver::recv) there. If cloning the
    /// message panics.
    #[track_caller]
    pub fn blocking_recv(&mut self) -> Result<T, RecvError> {
        blocking::wait_for("blocking_recv", "recv", self.recv())
    }

    /// Receives the next message, if there is one.
    ///
    /// # Panics
    /// If cloning the message panics.
    pub fn try_recv(&mut self) -> Result<T, TryRecvError> {
        let got = self.0.try_receive().ok_or(TryRecvError::Empty)?;
        into_message(got).map_err(|error| match error {
            RecvError::Lagged(missed) => TryRecvError::Lagged(missed),
            RecvError::Closed => TryRecvError::Closed,
        })
    }
}

impl<T> Receiver<T> {
    /// Creates a receiver for the messages that are sent from now on. A clone also gets those that this one
    /// has not received yet.
    #[track_caller]
    pub fn resubscribe(&self) -> Self {
        Self(subscribe(&self.0.seat))
    }

    /// Returns the number of messages that were sent and that this receiver has not received. If it is more
    /// than the [capacity](Receiver::capacity), the receiver has missed some.
    pub fn len(&self) -> usize {
        self.0.len()
    }
}

/// Stream of messages, and of the errors of a receiver that was too slow. A poll that is stopped takes
/// nothing. The first one allocates the memory with which the stream waits, and the rest allocate nothing.
///
/// ```
/// use convoke::prelude::*;
/// use convoke::sync::broadcast::{self, Lagged};
/// use convoke::task::map_concurrent;
///
/// let outcome = block_on(async {
///     let (sender, receiver) = broadcast::channel(1);
///     sender.send(1).expect("there is a receiver");
///     sender.send(2).expect("there is a receiver");
///     drop(sender);
///     let mut items = map_concurrent(receiver, 1, async |item| item);
///     (items.next().await, items.next().await, items.next().await)
/// });
/// assert_eq!(outcome, Outcome::Value((Some(Err(Lagged(1))), Some(Ok(2)), None)));
/// ```
impl<T: Clone> Stream for Receiver<T> {
    type Item = Result<T, Lagged>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.0.poll_receive(cx).map(|got| match into_message(got) {
            Ok(message) => Some(Ok(message)),
            Err(RecvError::Lagged(missed)) => Some(Err(Lagged(missed))),
            Err(RecvError::Closed) => None,
        })
    }
}

accessors!();

impl fmt::Display for Lagged {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the receiver was too slow, and missed {} messages", self.0)
    }
}

impl fmt::Display for RecvError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Lagged(missed) => Lagged(*missed).fmt(f),
            Self::Closed => f.write_str("the channel is closed, and all messages were received"),
        }
    }
}

impl fmt::Display for TryRecvError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => f.write_str("the channel is empty"),
            Self::Lagged(missed) => RecvError::Lagged(*missed).fmt(f),
            Self::Closed => RecvError::Closed.fmt(f),
        }
    }
}

impl core::error::Error for Lagged {}
impl core::error::Error for RecvError {}
impl core::error::Error for TryRecvError {}
