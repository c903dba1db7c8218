//! The shared part of a channel: the messages in order, and the waiters, under one lock.
//!
//! 1. A waiting sender carries its message as the payload of its node. It waits only while the channel is
//!    full: a receiver that frees a slot moves the message of the first waiting sender into it, under the
//!    same lock. So the order of messages is the order of sending, and no sender overtakes another.
//! 2. A waiting receiver is either handed the message itself (`direct`: there is only one receiver), or
//!    notified to check the queue. With several receivers, any of them can take a message from the queue,
//!    also when the notified one is stopped.
//! 3. A receiver that was notified or handed a message, and is dropped or stopped before it has received it,
//!    notifies the next one or puts the message back at the front.
//! 4. Once the channel is closed, no future begins to wait.

use core::fmt;
use core::mem;
use core::task::Waker;
use std::collections::VecDeque;

use convoke_core::raw::sync::atomic::{AtomicUsize, Ordering};

use super::super::wait_queue::{Locked, WaitQueue};
use super::{TryReceiveError, TrySendError};
use convoke_core::raw::wake_if_any;

// Indices of the two wait lists.
pub(super) const SENDERS: usize = 0;
pub(super) const RECEIVERS: usize = 1;

/// Number of messages for which memory is allocated at first. The queue grows on demand, up to the capacity.
const INITIAL_CAPACITY: usize = 32;

/// The messages of a channel and its waiters.
pub(crate) struct Queue<T> {
    pub(super) waiting: WaitQueue<State<T>, Option<T>, 2>,
    /// Number of messages, readable without the lock: a hint whether a call will have to wait.
    length: AtomicUsize,
    capacity: usize,
    /// True if there is only ever one receiver: rule 2.
    direct: bool,
}

pub(super) struct State<T> {
    messages: VecDeque<T>,
    senders: usize,
    receivers: usize,
    closed: bool,
}

pub(super) type Guard<'a, T> = Locked<'a, State<T>, Option<T>, 2>;

/// Result of an attempt to send.
pub(super) enum Offered<T> {
    /// Sent. The caller must wake this receiver.
    Sent(Option<Waker>),
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
        let state = State { messages, senders: 1, receivers: 1, closed: false };
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
                Offered::Sent(waker) => {
                    wake_if_any(waker);
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

    pub(crate) fn try_receive(&self) -> Result<T, TryReceiveError> {
        let mut locked = self.waiting.lock();
        let taken = self.take(&mut locked);
        drop(locked);
        match taken {
            Taken::Message(message, waker) => {
                wake_if_any(waker);
                Ok(message)
            }
            Taken::Empty => Err(TryReceiveError::Empty),
            Taken::Closed => Err(TryReceiveError::Closed),
        }
    }

    /// Sends a message, unless the channel is full or closed.
    #[inline]
    pub(super) fn offer(&self, locked: &mut Guard<'_, T>, message: T) -> Offered<T> {
        if locked.state().closed {
            return Offered::Closed(message);
        }
        if self.direct {
            // Rule 2: if the only receiver waits, the queue is empty, so this message is the next one.
            let mut message = Some(message);
            if let Some(((), waker)) = locked.grant(RECEIVERS, |payload| *payload = message.take()) {
                return Offered::Sent(Some(waker));
            }
            let Some(message) = message else { unreachable!("there was no receiver to take it") };
            return self.push(locked, message);
        }
        self.push(locked, message)
    }

    #[inline]
    fn push(&self, locked: &mut Guard<'_, T>, message: T) -> Offered<T> {
        let messages = &mut locked.state().messages;
        if messages.len() >= self.capacity {
            return Offered::Full(message);
        }
        if messages.len() == messages.capacity() {
            let capacity = messages.len().saturating_mul(2).min(self.capacity);
            return Offered::MustGrow(message, capacity);
        }
        messages.push_back(message);
        self.length.store(messages.len(), Ordering::Relaxed);
        Offered::Sent(self.notify_one(locked))
    }

    /// Receives a message, if there is one.
    #[inline]
    pub(super) fn take(&self, locked: &mut Guard<'_, T>) -> Taken<T> {
        let state = locked.state();
        let Some(message) = state.messages.pop_front() else {
            return if state.closed { Taken::Closed } else { Taken::Empty };
        };
        let mut waker = None;
        // The queue may hold more messages than its capacity if one was put back.
        if state.messages.len() < self.capacity
            && let Some((next, sender)) = locked.grant(SENDERS, Option::take)
        {
            // Rule 1. This does not allocate: a slot has just been freed.
            locked.state().messages.extend(next);
            waker = Some(sender);
        }
        self.length.store(locked.state().messages.len(), Ordering::Relaxed);
        Taken::Message(message, waker)
    }

    /// Notifies the first waiting receiver to check the queue.
    #[inline]
    fn notify_one(&self, locked: &mut Guard<'_, T>) -> Option<Waker> {
        locked.grant(RECEIVERS, |_| ()).map(|((), waker)| waker)
    }

    /// Applies rule 3 for a receiver that was notified and does not receive.
    pub(super) fn pass_on(&self) {
        let mut locked = self.waiting.lock();
        let waker = if locked.state().messages.is_empty() { None } else { self.notify_one(&mut locked) };
        drop(locked);
        wake_if_any(waker);
    }

    /// Applies rule 3 for a receiver that was handed a message and does not receive it.
    pub(super) fn put_back(&self, message: T) {
        let mut message = Some(message);
        loop {
            let mut locked = self.waiting.lock();
            let messages = &mut locked.state().messages;
            let capacity = messages.len() + 1;
            let fits = capacity <= messages.capacity();
            if fits && let Some(message) = message.take() {
                messages.push_front(message);
                self.length.store(messages.len(), Ordering::Relaxed);
            }
            let waker = if fits { self.notify_one(&mut locked) } else { None };
            drop(locked);
            wake_if_any(waker);
            if fits {
                return;
            }
            self.grow(capacity);
        }
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
        // Rule 4: no waiter is added from now on. A granted sender finds its message in its node and fails; a
        // granted receiver checks the queue, and finds the end of it.
        self.waiting.grant_all(SENDERS);
        self.waiting.grant_all(RECEIVERS);
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
