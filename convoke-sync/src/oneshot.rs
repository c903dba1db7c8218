//! Channel for a single message: `oneshot::channel()`.

use core::fmt;
use core::future::Future;
use std::sync::Arc;

pub use super::channel::{SendError, TryReceiveError};
use super::until::until;
use super::wait_queue::WaitQueue;
use convoke_core::raw::Pause;

// Indices of the two wait lists.
const RECEIVER: usize = 0;
const SENDER: usize = 1;

/// Creates a channel for a single message.
///
/// ```
/// use convoke::prelude::*;
/// use convoke::sync::oneshot;
///
/// let outcome = block_on(async {
///     scope(async |s| {
///         let (sender, mut receiver) = oneshot::channel();
///         s.spawn(async move {
///             checkpoint().await;
///             sender.send("hello").expect("somebody listens");
///         });
///         receiver.recv().await
///     })
///     .await
/// });
/// assert_eq!(outcome, Outcome::Value(Some("hello")));
/// ```
pub fn channel<T>() -> (Sender<T>, Receiver<T>) {
    let state = State { message: None, sender: true, receiver: true };
    let shared = Arc::new(WaitQueue::new(state));
    (Sender(shared.clone()), Receiver(shared))
}

struct State<T> {
    message: Option<T>,
    /// True while the sender exists: a message may still be sent.
    sender: bool,
    /// True while the receiver exists and has not closed the channel.
    receiver: bool,
}

type Shared<T> = WaitQueue<State<T>, (), 2>;

/// Sending half of a oneshot channel.
pub struct Sender<T>(Arc<Shared<T>>);

/// Receiving half of a oneshot channel.
pub struct Receiver<T>(Arc<Shared<T>>);

impl<T> Sender<T> {
    /// Sends the message. Returns it in the error if the receiver is dropped or has closed the channel.
    pub fn send(self, message: T) -> Result<(), SendError<T>> {
        let mut locked = self.0.lock();
        let state = locked.state();
        if !state.receiver {
            drop(locked);
            return Err(SendError(message));
        }
        state.message = Some(message);
        drop(locked);
        // `self` is dropped here, and its destructor wakes the receiver.
        Ok(())
    }

    /// Returns true if the receiver is dropped or has closed the channel.
    pub fn is_closed(&self) -> bool {
        !self.0.lock().state().receiver
    }

    /// Waits until the receiver is dropped or closes the channel. Use it to give up work whose result is not
    /// wanted.
    ///
    /// - *Completes with* `()`, or as stopped.
    /// - *If dropped*, it stops waiting.
    /// - *Runs on* the calling task. It also works outside a task, but cannot be stopped there.
    #[track_caller]
    pub fn closed(&mut self) -> impl Future<Output = ()> {
        until(&*self.0, SENDER, Pause::here(), |locked| (!locked.state().receiver).then_some(()))
    }
}

impl<T> Receiver<T> {
    /// Waits for the message.
    ///
    /// - *Completes with* the message; with `None` if the sender was dropped without sending, or the message
    ///   was received before; or as stopped if a stop was requested, even if there is a message. The message
    ///   then stays in the channel.
    /// - *If dropped*, it stops waiting, and the message stays in the channel.
    /// - *Runs on* the calling task. It also works outside a task, but cannot be stopped there.
    #[track_caller]
    pub fn recv(&mut self) -> impl Future<Output = Option<T>> {
        until(&*self.0, RECEIVER, Pause::here(), |locked| {
            let state = locked.state();
            match state.message.take() {
                Some(message) => Some(Some(message)),
                None if state.sender && state.receiver => None,
                None => Some(None),
            }
        })
    }

    /// Returns the message if it was sent.
    pub fn try_recv(&mut self) -> Result<T, TryReceiveError> {
        let mut locked = self.0.lock();
        let state = locked.state();
        match state.message.take() {
            Some(message) => Ok(message),
            None if state.sender && state.receiver => Err(TryReceiveError::Empty),
            None => Err(TryReceiveError::Closed),
        }
    }

    /// Closes the channel: a later `send` fails. A message that was sent before can still be received.
    pub fn close(&mut self) {
        self.0.lock().state().receiver = false;
        self.0.grant_all(SENDER);
    }
}

impl<T> Drop for Sender<T> {
    fn drop(&mut self) {
        self.0.lock().state().sender = false;
        self.0.grant_all(RECEIVER);
    }
}

impl<T> Drop for Receiver<T> {
    fn drop(&mut self) {
        let mut locked = self.0.lock();
        locked.state().receiver = false;
        let message = locked.state().message.take();
        drop(locked);
        self.0.grant_all(SENDER);
        drop(message);
    }
}

impl<T> fmt::Debug for Sender<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sender").field("closed", &self.is_closed()).finish()
    }
}

impl<T> fmt::Debug for Receiver<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sent = self.0.lock().state().message.is_some();
        f.debug_struct("Receiver").field("sent", &sent).finish()
    }
}
