//! Every message, for all who listen: `broadcast::channel(capacity)`.
//!
//! A message stays until all have received it who listened when it was sent. The slowest holds up who sends: nothing is
//! lost, and nothing piles up.

use core::fmt;
use core::future::Future;
use core::task::Waker;
use std::collections::VecDeque;
use std::sync::Arc;

use convoke_core::Panic;

use super::channel::{SendError, TryReceiveError, TrySendError};
use super::until::{Look, until, until_turn};
use super::wait_queue::WaitQueue;
use convoke_core::raw::Pause;
use convoke_core::raw::wake_if_any;

/// The lists.
const SENDERS: usize = 0;
const RECEIVERS: usize = 1;

/// A channel with room for so many messages that somebody has not received yet: who sends more waits.
///
/// It is closed by either side, or when all of a side are gone. Nothing can be sent then; what was sent is received.
///
/// # Panics
/// If the capacity is 0.
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
    assert!(capacity > 0, "a channel has room for at least one message");
    let messages = VecDeque::with_capacity(capacity);
    let state = State { messages, oldest: 0, capacity, senders: 1, receivers: 1, closed: false };
    let shared = Arc::new(WaitQueue::new(state));
    (Sender(shared.clone()), Receiver { shared, next: 0 })
}

struct State<T> {
    messages: VecDeque<Message<T>>,
    /// The number of the first of them, or of the next if there is none.
    oldest: u64,
    capacity: usize,
    senders: usize,
    receivers: usize,
    closed: bool,
}

struct Message<T> {
    /// Counted, because a message is cloned by foreign code, without the lock.
    message: Arc<T>,
    /// How many have not received it.
    left: usize,
}

type Shared<T> = WaitQueue<State<T>, (), 2>;

/// The side that sends. Clones send into the same channel.
pub struct Sender<T>(Arc<Shared<T>>);

/// One who listens. Clones receive what this one has not received yet.
pub struct Receiver<T> {
    shared: Arc<Shared<T>>,
    /// The number of the message to be received next.
    next: u64,
}

/// A message, and the sender to be woken because there is room now.
type Received<T> = (Arc<T>, Option<Waker>);

impl<T> State<T> {
    /// Why it cannot be sent, if so.
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

    fn end(&self) -> u64 {
        self.oldest.wrapping_add(self.messages.len() as u64)
    }

    /// Those from this number on.
    fn from(&mut self, next: u64) -> impl Iterator<Item = &mut Message<T>> {
        let before = next.wrapping_sub(self.oldest) as usize;
        self.messages.iter_mut().skip(before)
    }
}

/// The message with the number `next`; it counts as received.
fn receive<T>(locked: &mut Look<'_, State<T>>, next: &mut u64) -> Result<Received<T>, TryReceiveError> {
    let state = locked.state();
    let Some(entry) = state.from(*next).next() else {
        return Err(if state.closed { TryReceiveError::Closed } else { TryReceiveError::Empty });
    };
    *next = next.wrapping_add(1);
    entry.left -= 1;
    if entry.left > 0 {
        return Ok((entry.message.clone(), None));
    }
    // The last of all who wanted it. So had it been received before by all who are behind: it is the oldest.
    let Some(entry) = state.messages.pop_front() else { unreachable!("it was just there") };
    state.oldest = state.oldest.wrapping_add(1);
    let waker = locked.grant(SENDERS, |_| ()).map(|((), waker)| waker);
    Ok((entry.message, waker))
}

fn open_up<T: Clone>((message, waker): Received<T>) -> T {
    wake_if_any(waker);
    Arc::unwrap_or_clone(message)
}

fn close<T>(shared: &Shared<T>) {
    shared.lock().state().closed = true;
    shared.grant_all(SENDERS);
    shared.grant_all(RECEIVERS);
}

impl<T> Sender<T> {
    /// Sends a message to all who listen now, and waits for room if there is none.
    ///
    /// - *Completes with* nothing in particular; with the message in a [`SendError`] if the channel is closed or nobody
    ///   listens, also while it waits; or stopped: also if there is room, when a stop was asked for.
    /// - *If dropped* or stopped while it waits, the message is dropped with it.
    /// - *Runs on* the task; outside a task it waits as well, and cannot be stopped.
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

    /// Sends a message to all who listen now, if there is room.
    pub fn try_send(&self, message: T) -> Result<(), TrySendError<T>> {
        let mut message = Some(Arc::new(message));
        let offered = self.0.lock().state().offer(&mut message);
        match (offered, message.take()) {
            (Err(TrySendError::Full(())), Some(message)) => Err(TrySendError::Full(alone(message))),
            (offered, message) => self.sent(offered.is_ok(), message),
        }
    }

    fn sent(&self, sent: bool, message: Option<Arc<T>>) -> Result<(), TrySendError<T>> {
        if let Some(message) = message.filter(|_| !sent) {
            return Err(TrySendError::Closed(alone(message)));
        }
        self.0.grant_all(RECEIVERS);
        Ok(())
    }

    /// Another one who listens, to what is sent from now on.
    pub fn subscribe(&self) -> Receiver<T> {
        let mut locked = self.0.lock();
        let state = locked.state();
        state.receivers += 1;
        let next = state.end();
        drop(locked);
        Receiver { shared: self.0.clone(), next }
    }

    /// Closes the channel: nothing is sent from now on, by nobody. What was sent can be received.
    pub fn close(&self) {
        close(&self.0);
    }

    /// How many listen.
    pub fn receivers(&self) -> usize {
        self.0.lock().state().receivers
    }
}

/// It was never shared.
fn alone<T>(message: Arc<T>) -> T {
    let Some(message) = Arc::into_inner(message) else { unreachable!("nobody has received it") };
    message
}

impl<T: Clone> Receiver<T> {
    /// Receives the next message, and waits for one if there is none.
    ///
    /// - *Completes with* the message; `None` if the channel is closed and all messages were received; or stopped: also
    ///   if there is a message, when a stop was asked for. It stays in the channel then.
    /// - *If dropped*, it does not wait any more; nothing counts as received.
    /// - *Runs on* the task; outside a task it waits as well, and cannot be stopped.
    /// - *Panics* if cloning the message does.
    #[track_caller]
    pub fn recv(&mut self) -> impl Future<Output = Option<T>> {
        let Self { shared, next } = self;
        let received =
            until(&**shared, RECEIVERS, Pause::here(), move |locked| match receive(locked, next) {
                Ok(received) => Some(Some(received)),
                Err(TryReceiveError::Closed) => Some(None),
                Err(TryReceiveError::Empty) => None,
            });
        async move { received.await.map(open_up) }
    }

    /// Receives the next message, if there is one.
    ///
    /// # Panics
    /// If cloning the message does.
    pub fn try_recv(&mut self) -> Result<T, TryReceiveError> {
        let received = receive(&mut self.shared.lock(), &mut self.next);
        received.map(open_up)
    }
}

impl<T> Receiver<T> {
    /// Closes the channel: nothing is sent from now on, by nobody. What was sent can be received.
    pub fn close(&self) {
        close(&self.shared);
    }

    /// How many messages it has not received yet.
    pub fn len(&self) -> usize {
        let mut locked = self.shared.lock();
        locked.state().end().wrapping_sub(self.next) as usize
    }

    /// Whether there are none.
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
        // What nobody else wants goes, one after the other, and not under the lock.
        let last = loop {
            let mut locked = self.shared.lock();
            match receive(&mut locked, &mut self.next) {
                Ok((message, waker)) => {
                    drop(locked);
                    // Contained: who does not listen any more is taken out of the count nevertheless.
                    let dropped = Panic::catch(|| drop(message));
                    panic = panic.or(dropped.err());
                    wake_if_any(waker);
                }
                // In the same breath: what is sent from now on is not for us.
                Err(_) => {
                    let state = locked.state();
                    state.receivers -= 1;
                    break state.receivers == 0;
                }
            }
        };
        if last {
            // They get their messages back.
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
