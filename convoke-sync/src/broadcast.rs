//! Channel in which every receiver gets every message: `broadcast::channel(capacity)`.
//!
//! A message stays in the channel until every receiver that was subscribed when it was sent has received it.
//! The slowest receiver holds up the senders, so no message is lost and memory stays bounded.

use core::fmt;
use core::future::Future;
use core::task::Waker;
use std::collections::VecDeque;
use std::sync::Arc;

use convoke_core::Panic;

use super::channel::{SendError, TryReceiveError, TrySendError};
use super::until::{Guard, until, until_turn};
use super::wait_queue::WaitQueue;
use convoke_core::raw::Pause;
use convoke_core::raw::wake_if_any;

// Indices of the two wait lists.
const SENDERS: usize = 0;
const RECEIVERS: usize = 1;

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
/// use convoke::sync::broadcast;
///
/// let outcome = block_on(async {
///     scope(async |s| {
///         let (sender, mut receiver) = broadcast::channel(2);
///         let mut other = sender.subscribe();
///         s.spawn(async move {
///             for n in 1..=3 {
///                 sender.send(n).await.expect("somebody listens");
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
    assert!(capacity > 0, "the capacity of a channel must be at least 1");
    let messages = VecDeque::with_capacity(capacity);
    let state = State { messages, oldest: 0, capacity, senders: 1, receivers: 1, closed: false };
    let shared = Arc::new(WaitQueue::new(state));
    (Sender(shared.clone()), Receiver { shared, next: 0 })
}

struct State<T> {
    messages: VecDeque<Message<T>>,
    /// Sequence number of the first message, or of the next message to be sent if there is none.
    oldest: u64,
    capacity: usize,
    senders: usize,
    receivers: usize,
    closed: bool,
}

struct Message<T> {
    /// Reference-counted, because user code clones the message, and that must not run under the lock.
    message: Arc<T>,
    /// Number of receivers that have not received it yet.
    left: usize,
}

type Shared<T> = WaitQueue<State<T>, (), 2>;

/// Sending half of a broadcast channel. Clones send into the same channel.
pub struct Sender<T>(Arc<Shared<T>>);

/// Receiving half of a broadcast channel. A clone receives every message that the original has not received
/// yet.
pub struct Receiver<T> {
    shared: Arc<Shared<T>>,
    /// Sequence number of the next message to receive.
    next: u64,
}

/// A received message, and the waker of the sender that may use the freed slot.
type Received<T> = (Arc<T>, Option<Waker>);

impl<T> State<T> {
    /// Queues the message for all current receivers, or returns why it cannot.
    fn offer(&mut self, message: &mut Option<Arc<T>>) -> Result<(), TrySendError<()>> {
        if self.closed || self.receivers == 0 {
            return Err(TrySendError::Closed(()));
        }
        if self.messages.len() >= self.capacity {
            return Err(TrySendError::Full(()));
        }
        let left = self.receivers;
        self.messages.extend(message.take().map(|message| Message { message, left }));
        Ok(())
    }

    /// Returns the sequence number that the next message will get.
    fn end(&self) -> u64 {
        self.oldest.wrapping_add(self.messages.len() as u64)
    }

    /// Iterates over the messages from sequence number `next` on.
    fn from(&mut self, next: u64) -> impl Iterator<Item = &mut Message<T>> {
        let before = next.wrapping_sub(self.oldest) as usize;
        self.messages.iter_mut().skip(before)
    }
}

/// Takes the message with sequence number `next`, counts it as received, and advances `next`.
fn receive<T>(locked: &mut Guard<'_, State<T>>, next: &mut u64) -> Result<Received<T>, TryReceiveError> {
    let state = locked.state();
    let Some(entry) = state.from(*next).next() else {
        return Err(if state.closed { TryReceiveError::Closed } else { TryReceiveError::Empty });
    };
    *next = next.wrapping_add(1);
    entry.left -= 1;
    if entry.left > 0 {
        return Ok((entry.message.clone(), None));
    }
    // This was the last receiver that wanted the message. All messages before it are already gone, so it is
    // the oldest.
    let Some(entry) = state.messages.pop_front() else { unreachable!("the entry was found above") };
    state.oldest = state.oldest.wrapping_add(1);
    let waker = locked.grant(SENDERS, |_| ()).map(|((), waker)| waker);
    Ok((entry.message, waker))
}

/// Wakes the sender, if any, and unwraps or clones the message. Called without the lock.
fn into_message<T: Clone>((message, waker): Received<T>) -> T {
    wake_if_any(waker);
    Arc::unwrap_or_clone(message)
}

fn close<T>(shared: &Shared<T>) {
    shared.lock().state().closed = true;
    shared.grant_all(SENDERS);
    shared.grant_all(RECEIVERS);
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
        let pause = Pause::here();
        async move {
            let mut message = Some(Arc::new(message));
            let sent =
                until_turn(&*self.0, SENDERS, pause, |locked| match locked.state().offer(&mut message) {
                    Err(TrySendError::Full(())) => None,
                    Err(TrySendError::Closed(())) => Some(false),
                    Ok(()) => Some(true),
                })
                .await;
            self.sent(sent, message).map_err(|message| SendError(message.into_message()))
        }
    }

    /// Sends a message to all current receivers if the channel is not full.
    pub fn try_send(&self, message: T) -> Result<(), TrySendError<T>> {
        let mut message = Some(Arc::new(message));
        let offered = self.0.lock().state().offer(&mut message);
        match (offered, message.take()) {
            (Err(TrySendError::Full(())), Some(message)) => Err(TrySendError::Full(unshared(message))),
            (offered, message) => self.sent(offered.is_ok(), message),
        }
    }

    /// Finishes an attempt to send: wakes the receivers, or returns the message if it was not sent.
    fn sent(&self, sent: bool, message: Option<Arc<T>>) -> Result<(), TrySendError<T>> {
        if let Some(message) = message.filter(|_| !sent) {
            return Err(TrySendError::Closed(unshared(message)));
        }
        self.0.grant_all(RECEIVERS);
        Ok(())
    }

    /// Creates a receiver for the messages that are sent from now on.
    pub fn subscribe(&self) -> Receiver<T> {
        let mut locked = self.0.lock();
        let state = locked.state();
        state.receivers += 1;
        let next = state.end();
        drop(locked);
        Receiver { shared: self.0.clone(), next }
    }

    /// Closes the channel: every later `send` fails. Messages that were sent before can still be received.
    pub fn close(&self) {
        close(&self.0);
    }

    /// Returns the number of receivers.
    pub fn receivers(&self) -> usize {
        self.0.lock().state().receivers
    }
}

/// Unwraps a message that was never queued, and so was never shared.
fn unshared<T>(message: Arc<T>) -> T {
    let Some(message) = Arc::into_inner(message) else { unreachable!("the message was never queued") };
    message
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
        let Self { shared, next } = self;
        let received =
            until(&**shared, RECEIVERS, Pause::here(), move |locked| match receive(locked, next) {
                Ok(received) => Some(Some(received)),
                Err(TryReceiveError::Closed) => Some(None),
                Err(TryReceiveError::Empty) => None,
            });
        async move { received.await.map(into_message) }
    }

    /// Receives the next message, if there is one.
    ///
    /// # Panics
    /// If cloning the message panics.
    pub fn try_recv(&mut self) -> Result<T, TryReceiveError> {
        let received = receive(&mut self.shared.lock(), &mut self.next);
        received.map(into_message)
    }
}

impl<T> Receiver<T> {
    /// Closes the channel: every later `send` fails. Messages that were sent before can still be received.
    pub fn close(&self) {
        close(&self.shared);
    }

    /// Returns the number of messages that this receiver has not received yet.
    pub fn len(&self) -> usize {
        let mut locked = self.shared.lock();
        locked.state().end().wrapping_sub(self.next) as usize
    }

    /// Returns true if this receiver has received every message.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl<T> Clone for Sender<T> {
    fn clone(&self) -> Self {
        self.0.lock().state().senders += 1;
        Self(self.0.clone())
    }
}

impl<T> Drop for Sender<T> {
    fn drop(&mut self) {
        let mut locked = self.0.lock();
        locked.state().senders -= 1;
        let last = locked.state().senders == 0;
        drop(locked);
        if last {
            close(&self.0);
        }
    }
}

impl<T> Clone for Receiver<T> {
    fn clone(&self) -> Self {
        let mut locked = self.shared.lock();
        let state = locked.state();
        state.receivers += 1;
        state.from(self.next).for_each(|message| message.left += 1);
        drop(locked);
        Self { shared: self.shared.clone(), next: self.next }
    }
}

impl<T> Drop for Receiver<T> {
    fn drop(&mut self) {
        let mut panic = None;
        // Receives and drops what is left, one message at a time. Destructors of messages run without the
        // lock.
        let last = loop {
            let mut locked = self.shared.lock();
            match receive(&mut locked, &mut self.next) {
                Ok((message, waker)) => {
                    drop(locked);
                    // Caught, because this receiver must be uncounted even if the destructor panics.
                    let dropped = Panic::catch(|| drop(message));
                    panic = panic.or(dropped.err());
                    wake_if_any(waker);
                }
                // Under the same lock as the failed `receive`: no message that counts this receiver can come
                // in between.
                Err(_) => {
                    let state = locked.state();
                    state.receivers -= 1;
                    break state.receivers == 0;
                }
            }
        };
        if last {
            // No receiver is left: waiting senders get their messages back.
            self.shared.grant_all(SENDERS);
        }
        if let Some(panic) = panic
            && !std::thread::panicking()
        {
            panic.resume();
        }
    }
}

impl<T> fmt::Debug for Sender<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sender").field("receivers", &self.receivers()).finish()
    }
}

impl<T> fmt::Debug for Receiver<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Receiver").field("messages", &self.len()).finish()
    }
}
