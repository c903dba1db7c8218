//! The shared part of a channel: the messages in order, and the waiters, under one lock.
//!
//! 1. A waiting sender carries its message in its node, or the wish for a slot (`Carried`). It waits only
//!    while the channel is full: a call that frees a slot gives it to the first waiting sender, under the
//!    same lock. So the order of messages is the order of sending, and no sender overtakes another.
//! 2. A waiting receiver is either handed the message itself (`direct`: there is only one receiver), or
//!    notified to check the queue. With several receivers, any of them can take a message from the queue,
//!    also when the notified one is stopped.
//! 3. A receiver that was notified or handed a message, and is dropped or stopped before it has received it,
//!    notifies the next one or puts the message back at the front.
//! 4. Receivers that are polled as streams *listen*: each message wakes all of them, beside the receiver of
//!    rule 2. A stream that is not polled any more may still listen, and so must not use up a notification.
//! 5. A slot is filled by a message, or *reserved*: a permit holds it. A channel has ended when it is closed,
//!    empty, and no slot is reserved. Once it is closed, no sender begins to wait; once it has ended, no
//!    receiver does.

#![allow(unsafe_code)]

use core::fmt;
use core::mem;
use core::task::Waker;
use std::collections::VecDeque;

use convoke_core::raw::sync::atomic::{AtomicUsize, Ordering};

use super::super::seat::HasWaitQueue;
use super::super::wait_queue::{Locked, WaitQueue};
use super::{TryRecvError, TrySendError};
use convoke_core::raw::wake_if_any;

// Indices of the wait lists.
pub(super) const SENDERS: usize = 0;
pub(super) const RECEIVERS: usize = 1;
pub(crate) const LISTENERS: usize = 2;

/// Number of wait lists.
pub(crate) const LISTS: usize = 3;

/// Number of messages for which memory is allocated at first. The queue grows on demand, up to the capacity.
const INITIAL_CAPACITY: usize = 32;

/// The messages of a channel and its waiters.
pub(crate) struct Queue<T> {
    pub(super) waiting: WaitQueue<ChannelState<T>, Carried<T>, LISTS>,
    /// Number of messages, readable without the lock: a hint whether a call will have to wait.
    length: AtomicUsize,
    capacity: usize,
    /// True if there is only ever one receiver: rule 2.
    direct: bool,
}

// SAFETY: `wait_queue` below always borrows the field `waiting`, which is never replaced: the queue is behind an `Arc`.
unsafe impl<T> HasWaitQueue<LISTS> for Queue<T> {
    type State = ChannelState<T>;
    type Payload = Carried<T>;

    fn wait_queue(&self) -> &WaitQueue<ChannelState<T>, Carried<T>, LISTS> {
        &self.waiting
    }
}

pub(crate) struct ChannelState<T> {
    messages: VecDeque<T>,
    /// Number of reserved slots.
    reserved: usize,
    senders: usize,
    receivers: usize,
    closed: bool,
}

/// The payload of a waiter.
#[derive(Default)]
pub(crate) enum Carried<T> {
    /// Nothing: a receiver, or a sender whose message was taken or whose slot was reserved.
    #[default]
    Nothing,
    /// The message of a sender, or of a receiver that was handed it.
    Message(T),
    /// The wish of a sender for a slot.
    WantsSlot,
}

pub(super) type Guard<'a, T> = Locked<'a, ChannelState<T>, Carried<T>, LISTS>;

/// The waiters that a message has notified. The caller must wake them after it has released the lock.
#[must_use = "the notified waiters must be woken"]
pub(super) struct Notified {
    receiver: Option<Waker>,
    listeners: bool,
}

impl Notified {
    /// Wakes them. The lock is not held.
    #[inline]
    pub(super) fn wake<T>(self, queue: &Queue<T>) {
        wake_if_any(self.receiver);
        if self.listeners {
            queue.waiting.grant_all(LISTENERS);
        }
    }
}

/// Result of an attempt to send.
pub(super) enum Offered<T> {
    Sent(Notified),
    Full(T),
    Closed(T),
    /// The queue needs memory first: the caller must release the lock and call `grow` with this capacity.
    MustGrow(T, usize),
}

/// Result of an attempt to receive.
pub(super) enum Taken<T> {
    /// Received. The caller must wake this sender.
    Message(T, Option<Waker>),
    Empty,
    Closed,
}

impl<T> Queue<T> {
    /// Creates a queue for one sender and one receiver. If it is `direct`, no receiver may be added.
    #[track_caller]
    pub(crate) fn new(capacity: usize, direct: bool) -> Self {
        assert!(capacity > 0, "the capacity of a channel must be at least 1");
        let messages = VecDeque::with_capacity(capacity.min(INITIAL_CAPACITY));
        let state = ChannelState { messages, reserved: 0, senders: 1, receivers: 1, closed: false };
        Self { waiting: WaitQueue::new(state), length: AtomicUsize::new(0), capacity, direct }
    }

    /// Returns the number of messages at this moment.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.length.load(Ordering::Relaxed)
    }

    #[inline]
    pub(crate) fn capacity(&self) -> usize {
        self.capacity
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.waiting.lock().state().closed
    }

    pub(crate) fn try_send(&self, mut message: T) -> Result<(), TrySendError<T>> {
        loop {
            let mut locked = self.waiting.lock();
            let offered = self.offer(&mut locked, message);
            drop(locked);
            match offered {
                Offered::Sent(notified) => {
                    notified.wake(self);
                    return Ok(());
                }
                Offered::Full(message) => return Err(TrySendError::Full(message)),
                Offered::Closed(message) => return Err(TrySendError::Closed(message)),
                Offered::MustGrow(returned, capacity) => {
                    message = returned;
                    self.grow(capacity);
                }
            }
        }
    }

    pub(crate) fn try_receive(&self) -> Result<T, TryRecvError> {
        let mut locked = self.waiting.lock();
        let taken = self.take(&mut locked);
        drop(locked);
        match taken {
            Taken::Message(message, waker) => {
                wake_if_any(waker);
                Ok(message)
            }
            Taken::Empty => Err(TryRecvError::Empty),
            Taken::Closed => Err(TryRecvError::Closed),
        }
    }

    /// Receives for a stream. Returns `None` if it has to listen, and otherwise the message, or `None` at the
    /// end, with the sender to wake.
    pub(crate) fn take_listening(&self, locked: &mut Guard<'_, T>) -> Option<(Option<T>, Option<Waker>)> {
        match self.take(locked) {
            Taken::Message(message, sender) => Some((Some(message), sender)),
            Taken::Closed => Some((None, None)),
            Taken::Empty => None,
        }
    }

    /// Sends a message, unless the channel is full or closed.
    #[inline]
    pub(super) fn offer(&self, locked: &mut Guard<'_, T>, message: T) -> Offered<T> {
        let state = locked.state();
        if state.closed {
            return Offered::Closed(message);
        }
        if self.is_full(state) {
            return Offered::Full(message);
        }
        self.deliver(locked, message)
    }

    /// Returns true if every slot is filled or reserved. Sums cannot overflow: each reserved slot has a
    /// permit, and each message some memory.
    #[inline]
    fn is_full(&self, state: &ChannelState<T>) -> bool {
        state.messages.len() + state.reserved >= self.capacity
    }

    /// Hands a message to the only receiver, if it waits, or fills a slot with it. There is a free slot.
    #[inline]
    fn deliver(&self, locked: &mut Guard<'_, T>, message: T) -> Offered<T> {
        let mut message = Some(message);
        if self.direct {
            // Rule 2: if the only receiver waits, the queue is empty, so this message is the next one.
            let hand_over = |carried: &mut Carried<T>| {
                *carried = message.take().map_or(Carried::Nothing, Carried::Message);
            };
            if let Some(((), waker)) = locked.grant(RECEIVERS, hand_over) {
                return Offered::Sent(Notified { receiver: Some(waker), listeners: false });
            }
        }
        let Some(message) = message else { unreachable!("there was no receiver to take it") };
        let messages = &mut locked.state().messages;
        if messages.len() == messages.capacity() {
            return Offered::MustGrow(message, self.larger(messages.len()));
        }
        messages.push_back(message);
        self.length.store(messages.len(), Ordering::Relaxed);
        Offered::Sent(self.notify(locked))
    }

    /// Receives a message, if there is one.
    #[inline]
    pub(super) fn take(&self, locked: &mut Guard<'_, T>) -> Taken<T> {
        let state = locked.state();
        let Some(message) = state.messages.pop_front() else {
            return if state.closed && state.reserved == 0 { Taken::Closed } else { Taken::Empty };
        };
        let mut waker = None;
        // The queue may hold more messages than its capacity if one was put back.
        if !self.is_full(state)
            && let Some((carried, sender)) = locked.grant(SENDERS, mem::take)
        {
            // Rule 1. This does not allocate: a slot has just been freed.
            match carried {
                Carried::Message(next) => locked.state().messages.push_back(next),
                Carried::WantsSlot => locked.state().reserved += 1,
                Carried::Nothing => {}
            }
            waker = Some(sender);
        }
        self.length.store(locked.state().messages.len(), Ordering::Relaxed);
        Taken::Message(message, waker)
    }

    /// Notifies the first waiting receiver, and all listeners, to check the queue.
    #[inline]
    fn notify(&self, locked: &mut Guard<'_, T>) -> Notified {
        let receiver = locked.grant(RECEIVERS, |_| ()).map(|((), waker)| waker);
        Notified { receiver, listeners: !locked.is_empty(LISTENERS) }
    }

    /// Applies rule 3 for a receiver that was notified and does not receive.
    pub(super) fn pass_on(&self) {
        let mut locked = self.waiting.lock();
        let empty = locked.state().messages.is_empty();
        let notified = if empty { None } else { Some(self.notify(&mut locked)) };
        drop(locked);
        if let Some(notified) = notified {
            notified.wake(self);
        }
    }

    /// Applies rule 3 for a receiver that was handed a message and does not receive it.
    pub(super) fn put_back(&self, message: T) {
        let mut message = Some(message);
        loop {
            let mut locked = self.waiting.lock();
            let messages = &mut locked.state().messages;
            let capacity = messages.len() + 1;
            if capacity > messages.capacity() {
                drop(locked);
                self.grow(capacity);
                continue;
            }
            if let Some(message) = message.take() {
                messages.push_front(message);
                self.length.store(messages.len(), Ordering::Relaxed);
            }
            let notified = self.notify(&mut locked);
            drop(locked);
            return notified.wake(self);
        }
    }

    /// Returns the number of messages for which to allocate memory when `length` fill it.
    fn larger(&self, length: usize) -> usize {
        // At least one more: a message that was put back may exceed the capacity.
        length.saturating_mul(2).min(self.capacity).max(length + 1)
    }

    /// Grows the memory to hold `capacity` messages. Allocates and frees without the lock.
    #[cold]
    pub(super) fn grow(&self, capacity: usize) {
        let mut larger = VecDeque::with_capacity(capacity);
        let mut locked = self.waiting.lock();
        let messages = &mut locked.state().messages;
        if messages.capacity() < larger.capacity() {
            larger.append(messages);
            mem::swap(messages, &mut larger);
        }
        drop(locked);
    }

    /// Closes the channel: every later attempt to send fails. Messages that were sent before can still be
    /// received.
    pub(crate) fn close(&self) {
        self.waiting.lock().state().closed = true;
        // Rule 5: no sender is added from now on. A granted sender finds its message, or its wish, in its
        // node and fails.
        self.waiting.grant_all(SENDERS);
        self.wake_all_receivers();
    }

    /// Makes all waiting receivers check the queue, and whether it has ended.
    fn wake_all_receivers(&self) {
        self.waiting.grant_all(RECEIVERS);
        self.waiting.grant_all(LISTENERS);
    }

    /// Reserves a slot for a sender.
    pub(super) fn reserve(&self, locked: &mut Guard<'_, T>) -> Result<(), TrySendError<()>> {
        let state = locked.state();
        if state.closed {
            return Err(TrySendError::Closed(()));
        }
        if self.is_full(state) {
            return Err(TrySendError::Full(()));
        }
        state.reserved += 1;
        Ok(())
    }

    /// Ends a reservation: fills the slot with the message, if there is one, or frees it. Returns the message
    /// if there are no receivers.
    pub(super) fn fill_reserved(&self, mut message: Option<T>) -> Option<T> {
        loop {
            let mut locked = self.waiting.lock();
            let has_receivers = locked.state().receivers > 0;
            let offered = match message.take() {
                Some(message) if has_receivers => Some(self.deliver(&mut locked, message)),
                unsent => {
                    message = unsent;
                    None
                }
            };
            if let Some(Offered::MustGrow(returned, capacity)) = offered {
                drop(locked);
                message = Some(returned);
                self.grow(capacity);
                continue;
            }
            let state = locked.state();
            state.reserved -= 1;
            let has_ended = state.closed && state.reserved == 0;
            drop(locked);
            if let Some(Offered::Sent(notified)) = offered {
                notified.wake(self);
            }
            if has_ended {
                // Rule 5: receivers wait for the last permit.
                self.wake_all_receivers();
            }
            self.serve_senders();
            return message;
        }
    }

    /// Gives free slots to the waiting senders, in order.
    fn serve_senders(&self) {
        loop {
            let mut locked = self.waiting.lock();
            let state = locked.state();
            if self.is_full(state) || state.closed {
                return;
            }
            let (length, memory) = (state.messages.len(), state.messages.capacity());
            if length == memory && !locked.is_empty(SENDERS) {
                drop(locked);
                self.grow(self.larger(length));
                continue;
            }
            let Some((carried, sender)) = locked.grant(SENDERS, mem::take) else { return };
            let delivered = match carried {
                Carried::Message(message) => Some(self.deliver(&mut locked, message)),
                Carried::WantsSlot => {
                    locked.state().reserved += 1;
                    None
                }
                Carried::Nothing => None,
            };
            drop(locked);
            if let Some(Offered::Sent(notified)) = delivered {
                notified.wake(self);
            }
            wake_if_any(Some(sender));
        }
    }

    pub(crate) fn add_sender(&self) {
        self.waiting.lock().state().senders += 1;
    }

    pub(crate) fn add_receiver(&self) {
        self.waiting.lock().state().receivers += 1;
    }

    pub(crate) fn remove_sender(&self) {
        let mut locked = self.waiting.lock();
        locked.state().senders -= 1;
        let last = locked.state().senders == 0;
        drop(locked);
        if last {
            self.close();
        }
    }

    pub(crate) fn remove_receiver(&self) {
        let mut locked = self.waiting.lock();
        let state = locked.state();
        state.receivers -= 1;
        let last = state.receivers == 0;
        // No receiver is left, so the messages are dropped, without the lock.
        let messages = if last { mem::take(&mut state.messages) } else { VecDeque::new() };
        state.closed |= last;
        drop(locked);
        if last {
            self.length.store(0, Ordering::Relaxed);
            self.close();
        }
        drop(messages);
    }
}

impl<T> fmt::Debug for Queue<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Queue").field("messages", &self.len()).field("capacity", &self.capacity).finish()
    }
}
