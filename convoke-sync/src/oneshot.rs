//! Channel for a single message: `oneshot::channel()`.
//!
//! Each half has one owner, so one waker for each half suffices, and there are no lists of waiters. All of it
//! is under a short lock. Wakers are cloned, called and dropped without it.

use core::fmt;
use core::future::Future;
use core::panic::{RefUnwindSafe, UnwindSafe};
use core::pin::Pin;
use core::task::{Context, Poll, Waker};
use std::sync::Arc;

use convoke_core::raw::{Pause, SpinLock, budget, discard, wake_if_any};

use super::blocking;
pub use super::channel::{Closed, SendError, TryRecvError};

/// Creates a channel for a single message. The receiver is a future: await it, or a reference to it.
///
/// ```
/// use convoke::prelude::*;
/// use convoke::sync::oneshot;
///
/// let outcome = block_on(async {
///     scope(async |s| {
///         let (sender, receiver) = oneshot::channel();
///         s.spawn(async move {
///             checkpoint().await;
///             sender.send("hello").expect("the receiver exists");
///         });
///         receiver.await
///     })
///     .await
/// });
/// assert_eq!(outcome, Outcome::Value(Ok("hello")));
/// ```
#[track_caller]
pub fn channel<T>() -> (Sender<T>, Receiver<T>) {
    let state = OneshotState { message: None, sender: Half::new(), receiver: Half::new() };
    let shared = Arc::new(SpinLock::new(state));
    (Sender(shared.clone()), Receiver { shared, pause: Pause::here() })
}

struct OneshotState<T> {
    message: Option<T>,
    /// Open while the sender exists: a message may still be sent.
    sender: Half,
    /// Open while the receiver exists and has not closed the channel.
    receiver: Half,
}

/// The state of one half of a channel.
struct Half {
    open: bool,
    /// Set while it waits for the other half.
    waker: Option<Waker>,
}

impl Half {
    const fn new() -> Self {
        Self { open: true, waker: None }
    }
}

type Shared<T> = SpinLock<OneshotState<T>>;

/// Sending half of a oneshot channel.
pub struct Sender<T>(Arc<Shared<T>>);

/// Receiving half of a oneshot channel, and the future of its message.
///
/// - *Completes with* the message; with [`Closed`] if the sender was dropped without sending, the receiver has
///   closed the channel, or the message was received before; or as stopped if a stop was requested, even if
///   there is a message. The message then stays in the channel.
/// - *If dropped*, a later `send` fails, and a message that was sent before is dropped. Await `&mut receiver`
///   to keep it.
/// - *Runs on* the calling task. It also works outside a task, but cannot be stopped there.
pub struct Receiver<T> {
    shared: Arc<Shared<T>>,
    /// The registration for a stop. Waits are shown at the line that has created the channel.
    pause: Pause,
}

// No user code runs under the lock, so no panic can leave the state half changed.
impl<T> UnwindSafe for Sender<T> {}
impl<T> RefUnwindSafe for Sender<T> {}
impl<T> UnwindSafe for Receiver<T> {}
impl<T> RefUnwindSafe for Receiver<T> {}

impl<T> OneshotState<T> {
    /// Takes the message, or says why there is none.
    fn take(&mut self) -> Result<T, TryRecvError> {
        match self.message.take() {
            Some(message) => Ok(message),
            None if self.sender.open && self.receiver.open => Err(TryRecvError::Empty),
            None => Err(TryRecvError::Closed),
        }
    }
}

/// Polls one half: checks the state until it is as `check` wants it, and leaves the waker of `cx` otherwise.
fn poll<T, R>(
    shared: &Shared<T>,
    half: fn(&mut OneshotState<T>) -> &mut Half,
    pause: &mut Pause,
    check: impl Fn(&mut OneshotState<T>) -> Option<R>,
    cx: &mut Context<'_>,
) -> Poll<R> {
    if Pause::is_stopped() {
        forget_waker(shared, half);
        return Poll::Pending;
    }
    // Before the message is taken.
    if !budget::may_proceed(cx) {
        return Poll::Pending;
    }
    let mut spare = None;
    loop {
        let mut state = shared.lock();
        if let Some(found) = check(&mut state) {
            let before = half(&mut state).waker.take();
            drop(state);
            // `discard` contains a panic of a waker: the message may exist only here, and must not be lost.
            before.into_iter().chain(spare).for_each(discard);
            budget::spend();
            return Poll::Ready(found);
        }
        let waker = &mut half(&mut state).waker;
        let is_same = waker.as_ref().is_some_and(|waker| waker.will_wake(cx.waker()));
        if is_same || spare.is_some() {
            if !is_same {
                core::mem::swap(waker, &mut spare);
            }
            drop(state);
            // What is in it now was left by an earlier poll.
            spare.into_iter().for_each(discard);
            pause.wait(cx);
            return Poll::Pending;
        }
        drop(state);
        spare = Some(cx.waker().clone());
    }
}

/// Removes the waker of a half that does not wait any more.
#[cold]
fn forget_waker<T>(shared: &Shared<T>, half: fn(&mut OneshotState<T>) -> &mut Half) {
    let waker = half(&mut shared.lock()).waker.take();
    waker.into_iter().for_each(discard);
}

/// Future of one half that borrows it, and removes its waker when it is dropped.
struct Waits<'a, T, F> {
    shared: &'a Shared<T>,
    half: fn(&mut OneshotState<T>) -> &mut Half,
    pause: Pause,
    check: F,
    waits: bool,
}

impl<T, F, R> Future for Waits<'_, T, F>
where
    F: Fn(&mut OneshotState<T>) -> Option<R> + Unpin,
{
    type Output = R;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<R> {
        let Self { shared, half, pause, check, waits } = &mut *self;
        let polled = poll(shared, *half, pause, &*check, cx);
        *waits = polled.is_pending();
        polled
    }
}

impl<T, F> Drop for Waits<'_, T, F> {
    fn drop(&mut self) {
        if self.waits {
            forget_waker(self.shared, self.half);
        }
    }
}

impl<T> Sender<T> {
    /// Sends the message. Returns it in the error if the receiver is dropped or has closed the channel.
    pub fn send(self, message: T) -> Result<(), SendError<T>> {
        let mut state = self.0.lock();
        if !state.receiver.open {
            drop(state);
            return Err(SendError(message));
        }
        state.message = Some(message);
        drop(state);
        // `self` is dropped here, and its destructor wakes the receiver.
        Ok(())
    }

    /// Returns true if the receiver is dropped or has closed the channel.
    pub fn is_closed(&self) -> bool {
        !self.0.lock().receiver.open
    }

    /// Waits until the receiver is dropped or closes the channel. Use it to give up work whose result is not
    /// wanted.
    ///
    /// - *Completes with* `()`, or as stopped.
    /// - *If dropped*, it stops waiting.
    /// - *Runs on* the calling task. It also works outside a task, but cannot be stopped there.
    #[track_caller]
    pub fn closed(&mut self) -> impl Future<Output = ()> {
        let check = |state: &mut OneshotState<T>| (!state.receiver.open).then_some(());
        Waits { shared: &*self.0, half: sending, pause: Pause::here(), check, waits: false }
    }
}

impl<T> Receiver<T> {
    /// Waits for the message. Use it where a wait may be given up and repeated; otherwise await the receiver.
    ///
    /// - *Completes with* the message; with `None` if the sender was dropped without sending, the receiver has
    ///   closed the channel, or the message was received before; or as stopped if a stop was requested, even
    ///   if there is a message. The message then stays in the channel.
    /// - *If dropped*, it stops waiting, and the message stays in the channel.
    /// - *Runs on* the calling task. It also works outside a task, but cannot be stopped there.
    #[track_caller]
    pub fn recv(&mut self) -> impl Future<Output = Option<T>> {
        let check = |state: &mut OneshotState<T>| match state.take() {
            Ok(message) => Some(Some(message)),
            Err(TryRecvError::Closed) => Some(None),
            Err(TryRecvError::Empty) => None,
        };
        Waits { shared: &*self.shared, half: receiving, pause: Pause::here(), check, waits: false }
    }

    /// Waits for the message on a thread that runs no tasks. Blocks the thread until it is sent, or the sender
    /// is dropped. Nothing stops it.
    ///
    /// # Panics
    /// In a task, and on the thread of a run loop: await the receiver there.
    ///
    /// ```
    /// use convoke::sync::oneshot;
    ///
    /// let (sender, receiver) = oneshot::channel();
    /// let thread = std::thread::spawn(move || receiver.blocking_recv());
    /// sender.send(7).expect("there is a receiver");
    /// assert_eq!(thread.join().unwrap(), Ok(7));
    /// ```
    #[track_caller]
    pub fn blocking_recv(self) -> Result<T, Closed> {
        blocking::wait_for("blocking_recv", "receiver", self)
    }

    /// Returns the message if it was sent.
    pub fn try_recv(&mut self) -> Result<T, TryRecvError> {
        self.shared.lock().take()
    }

    /// Returns true if no message can come any more: the sender is dropped, or this receiver has closed the
    /// channel. There may be a message that was sent before.
    pub fn is_closed(&self) -> bool {
        let state = self.shared.lock();
        !state.sender.open || !state.receiver.open
    }

    /// Returns true if there is no message: it was not sent yet, or was received.
    pub fn is_empty(&self) -> bool {
        self.shared.lock().message.is_none()
    }

    /// Closes the channel: a later `send` fails. A message that was sent before can still be received.
    pub fn close(&mut self) {
        let mut state = self.shared.lock();
        state.receiver.open = false;
        let sender = state.sender.waker.take();
        drop(state);
        wake_if_any(sender);
    }
}

fn sending<T>(state: &mut OneshotState<T>) -> &mut Half {
    &mut state.sender
}

fn receiving<T>(state: &mut OneshotState<T>) -> &mut Half {
    &mut state.receiver
}

impl<T> Future for Receiver<T> {
    type Output = Result<T, Closed>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<T, Closed>> {
        let Self { shared, pause } = &mut *self;
        let check = |state: &mut OneshotState<T>| match state.take() {
            Ok(message) => Some(Ok(message)),
            Err(TryRecvError::Closed) => Some(Err(Closed)),
            Err(TryRecvError::Empty) => None,
        };
        poll(shared, receiving, pause, check, cx)
    }
}

impl<T> Drop for Sender<T> {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        state.sender.open = false;
        let receiver = state.receiver.waker.take();
        drop(state);
        wake_if_any(receiver);
    }
}

impl<T> Drop for Receiver<T> {
    fn drop(&mut self) {
        let mut state = self.shared.lock();
        state.receiver.open = false;
        let (message, waker) = (state.message.take(), state.receiver.waker.take());
        let sender = state.sender.waker.take();
        drop(state);
        waker.into_iter().for_each(discard);
        wake_if_any(sender);
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
        f.debug_struct("Receiver").field("sent", &!self.is_empty()).finish()
    }
}
