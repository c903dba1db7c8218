//! The two halves of a broadcast channel, without their public names: both kinds of broadcast channels wrap
//! them.

use core::task::{Context, Poll, Waker};
use std::sync::Arc;

use convoke_core::Panic;
use convoke_core::raw::wake_if_any;

use super::broadcast_ring::{RECEIVERS, Ring, RingMessage, RingTaken, SENDERS, Shared};
use super::seat::Seat;
use super::until::{Guard, poll_seat};
use super::wait_queue::WaitQueue;

/// Creates the halves of a channel.
#[track_caller]
pub(super) fn halves<T>(capacity: usize) -> (Writer<T>, Reader<T>) {
    let shared = Arc::new(WaitQueue::new(Ring::new(capacity)));
    (Writer(shared.clone()), Reader { seat: Seat::new(shared), next: 0 })
}

/// Sending half. Clones send into the same channel.
pub(super) struct Writer<T>(pub(super) Arc<Shared<T>>);

/// Receiving half. A clone receives every message that the original has not received yet.
pub(super) struct Reader<T> {
    pub(super) seat: Seat<Shared<T>, 2>,
    /// Sequence number of the next message to receive.
    next: u64,
}

/// Result of a receive that does not wait any more.
pub(super) enum Received<T> {
    /// A message, and the waker of the sender that may use the freed slot.
    Message(RingMessage<T>, Option<Waker>),
    /// The number of messages that this receiver has missed.
    Missed(u64),
    /// The channel is closed, and this receiver has received all messages.
    Closed,
}

/// Takes the message with sequence number `next`. Returns `None` if there is none yet.
pub(super) fn receive<T>(locked: &mut Guard<'_, Ring<T>>, next: &mut u64) -> Option<Received<T>> {
    match locked.state().take(next) {
        RingTaken::Message { message, is_last } => {
            let sender = if is_last { locked.grant(SENDERS, |_| ()) } else { None };
            Some(Received::Message(message, sender.map(|((), waker)| waker)))
        }
        RingTaken::Missed(missed) => Some(Received::Missed(missed)),
        RingTaken::Closed => Some(Received::Closed),
        RingTaken::Empty => None,
    }
}

/// Closes the channel, and wakes everything that waits for it.
pub(super) fn close<T>(shared: &Shared<T>) {
    shared.lock().state().closed = true;
    shared.grant_all(SENDERS);
    shared.grant_all(RECEIVERS);
}

/// Creates a receiver for the messages that are sent from now on.
#[track_caller]
pub(super) fn subscribe<T>(shared: &Arc<Shared<T>>) -> Reader<T> {
    let mut locked = shared.lock();
    let ring = locked.state();
    ring.receivers += 1;
    let next = ring.end();
    drop(locked);
    Reader { seat: Seat::new(shared.clone()), next }
}

impl<T> Writer<T> {
    /// Creates a receiver for the messages that are sent from now on.
    #[track_caller]
    pub(super) fn subscribe(&self) -> Reader<T> {
        subscribe(&self.0)
    }
}

impl<T> Reader<T> {
    /// Returns the shared part and the position, for a future that receives.
    pub(super) fn parts(&mut self) -> (&Shared<T>, &mut u64) {
        (&**self.seat, &mut self.next)
    }

    pub(super) fn try_receive(&mut self) -> Option<Received<T>> {
        receive(&mut self.seat.lock(), &mut self.next)
    }

    pub(super) fn poll_receive(&mut self, cx: &mut Context<'_>) -> Poll<Received<T>> {
        let next = &mut self.next;
        poll_seat(&mut self.seat, RECEIVERS, |_, locked| receive(locked, next), cx)
    }

    /// Returns the number of messages that it has not received yet, including those that it has missed.
    pub(super) fn len(&self) -> usize {
        (self.seat.lock().state().end() - self.next) as usize
    }
}

impl<T> Clone for Writer<T> {
    fn clone(&self) -> Self {
        self.0.lock().state().senders += 1;
        Self(self.0.clone())
    }
}

impl<T> Drop for Writer<T> {
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

impl<T> Clone for Reader<T> {
    fn clone(&self) -> Self {
        self.seat.lock().state().add_receiver(self.next);
        Self { seat: self.seat.another(), next: self.next }
    }
}

impl<T> Drop for Reader<T> {
    fn drop(&mut self) {
        let mut panic = None;
        // Receives and drops what is left, one message at a time. Destructors of messages run without the
        // lock.
        let last = loop {
            let mut locked = self.seat.lock();
            match receive(&mut locked, &mut self.next) {
                Some(Received::Message(message, waker)) => {
                    drop(locked);
                    // Caught, because this receiver must be uncounted even if the destructor panics.
                    let dropped = Panic::catch(|| drop(message));
                    panic = panic.or(dropped.err());
                    wake_if_any(waker);
                }
                Some(Received::Missed(_)) => {}
                // Under the same lock as the failed `receive`: no message that counts this receiver can come
                // in between.
                Some(Received::Closed) | None => {
                    let ring = locked.state();
                    ring.receivers -= 1;
                    break ring.receivers == 0;
                }
            }
        };
        if last {
            // No receiver is left: waiting senders get their messages back.
            self.seat.grant_all(SENDERS);
        }
        if let Some(panic) = panic
            && !std::thread::panicking()
        {
            panic.resume();
        }
    }
}

/// Defines what the public halves of both kinds of channels have in common: all that neither sends nor receives.
macro_rules! accessors {
    () => {
        impl<T> Sender<T> {
            /// Creates a receiver for the messages that are sent from now on.
            #[track_caller]
            pub fn subscribe(&self) -> Receiver<T> {
                Receiver(self.0.subscribe())
            }

            /// Closes the channel: every later `send` fails. Messages that were sent before can still be received.
            pub fn close(&self) {
                close(&self.0.0);
            }

            /// Returns true if sending fails: the channel was closed, or has no receivers now.
            pub fn is_closed(&self) -> bool {
                self.0.0.lock().state().is_over()
            }

            /// Returns the number of receivers.
            #[doc(alias = "receiver_count")]
            pub fn receivers(&self) -> usize {
                self.0.0.lock().state().receivers
            }

            /// Returns the number of messages that some receiver has not received yet.
            pub fn len(&self) -> usize {
                self.0.0.lock().state().len()
            }

            /// Returns true if every receiver has received every message.
            pub fn is_empty(&self) -> bool {
                self.len() == 0
            }

            /// Returns the number of messages that the channel can hold.
            pub fn capacity(&self) -> usize {
                self.0.0.lock().state().capacity
            }
        }

        impl<T> Receiver<T> {
            /// Closes the channel: every later `send` fails. Messages that were sent before can still be received.
            pub fn close(&self) {
                close(&self.0.seat);
            }

            /// Returns true if the channel is closed, by `close` or because all senders are dropped. There may be
            /// messages left.
            pub fn is_closed(&self) -> bool {
                self.0.seat.lock().state().closed
            }

            /// Returns true if this receiver has received every message.
            pub fn is_empty(&self) -> bool {
                self.len() == 0
            }

            /// Returns the number of messages that the channel can hold.
            pub fn capacity(&self) -> usize {
                self.0.seat.lock().state().capacity
            }
        }

        impl<T> Clone for Sender<T> {
            fn clone(&self) -> Self {
                Self(self.0.clone())
            }
        }

        impl<T> Clone for Receiver<T> {
            fn clone(&self) -> Self {
                Self(self.0.clone())
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
    };
}
pub(super) use accessors;
