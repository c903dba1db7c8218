//! One message, from one to one: `oneshot::channel()`.

use core::fmt;
use core::future::Future;
use std::sync::Arc;

pub use super::channel::{SendError, TryReceiveError};
use super::until::until;
use super::wait_queue::WaitQueue;
use convoke_core::raw::Pause;

/// The lists.
const RECEIVER: usize = 0;
const SENDER: usize = 1;

/// A channel for one message.
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
    /// Whether a message may still be sent.
    sender: bool,
    /// Whether one may still be received that is not there yet.
    receiver: bool,
}

type Shared<T> = WaitQueue<State<T>, (), 2>;

/// The side that sends.
pub struct Sender<T>(Arc<Shared<T>>);

/// The side that receives.
pub struct Receiver<T>(Arc<Shared<T>>);

impl<T> Sender<T> {
    /// Sends the message. It is given back if the receiver is gone or has closed the channel.
    pub fn send(self, message: T) -> Result<(), SendError<T>> {
        let mut locked = self.0.lock();
        let state = locked.state();
        if !state.receiver {
            drop(locked);
            return Err(SendError(message));
        }
        state.message = Some(message);
        drop(locked);
        // The receiver is told when we are dropped, now.
        Ok(())
    }

    /// Whether nobody will receive what is sent.
    pub fn is_closed(&self) -> bool {
        !self.0.lock().state().receiver
    }

    /// Waits until nobody will receive what is sent: to give up work that nobody waits for.
    ///
    /// - *Completes with* nothing in particular, or stopped.
    /// - *If dropped*, it does not wait any more.
    /// - *Runs on* the task; outside a task it waits as well, and cannot be stopped.
    #[track_caller]
    pub fn closed(&mut self) -> impl Future<Output = ()> {
        until(&*self.0, SENDER, Pause::here(), |locked| (!locked.state().receiver).then_some(()))
    }
}

impl<T> Receiver<T> {
    /// Waits for the message.
    ///
    /// - *Completes with* the message; `None` if none will come: the sender is gone, or the message was received
    ///   before; or stopped: also if the message is there, when a stop was asked for. It stays in the channel then.
    /// - *If dropped*, it does not wait any more; the message stays in the channel.
    /// - *Runs on* the task; outside a task it waits as well, and cannot be stopped.
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

    /// The message, if it is there.
    pub fn try_recv(&mut self) -> Result<T, TryReceiveError> {
        let mut locked = self.0.lock();
        let state = locked.state();
        match state.message.take() {
            Some(message) => Ok(message),
            None if state.sender && state.receiver => Err(TryReceiveError::Empty),
            None => Err(TryReceiveError::Closed),
        }
    }

    /// From now on nothing is sent. What was sent can be received.
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
