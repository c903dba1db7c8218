//! What the two sides of a channel share: messages in order, and those who wait, under one lock.
//!
//! 1. Who waits to send carries its message. It waits only while the channel is full: whoever makes room takes the
//!    message of the first along, in the same breath. So the order of messages is the order of sending, and no sender
//!    overtakes another.
//! 2. Who waits to receive is either given the message itself (*direct*: there is only one receiver), or told to look.
//!    With several, a message that lies in the channel is found by any of them, also when the one who was told is
//!    stopped.
//! 3. Who is told, or given a message, and goes without having received it, tells the next, or puts it back in front.
//! 4. Once closed, nobody begins to wait.

use core::fmt;
use core::mem;
use core::task::Waker;
use std::collections::VecDeque;

use convoke_core::raw::sync::atomic::{AtomicUsize, Ordering};

use super::super::wait_queue::{Locked, WaitQueue};
use super::{TryReceiveError, TrySendError};
use convoke_core::raw::wake_if_any;

/// The lists.
pub(super) const SENDERS: usize = 0;
pub(super) const RECEIVERS: usize = 1;

/// Room for so many messages is made at once; more as they come, up to the capacity.
const ROOM_AT_FIRST: usize = 32;

/// See the head of this file.
pub(crate) struct Queue<T> {
    pub(super) waiting: WaitQueue<State<T>, Option<T>, 2>,
    /// How many messages there are. A guess for who does not hold the lock: whether one will have to wait.
    length: AtomicUsize,
    capacity: usize,
    direct: bool,
}

pub(super) struct State<T> {
    messages: VecDeque<T>,
    senders: usize,
    receivers: usize,
    closed: bool,
}

pub(super) type Guard<'a, T> = Locked<'a, State<T>, Option<T>, 2>;

/// What came of an attempt to send.
pub(super) enum Offered<T> {
    /// It is sent; this one is to be woken.
    Sent(Option<Waker>),
    Full(T),
    Closed(T),
    /// There is no memory for it yet: room for so many is to be made, without the lock.
    NoRoom(T, usize),
}

/// What came of an attempt to receive.
pub(super) enum Taken<T> {
    /// This one, who sends, is to be woken.
    Message(T, Option<Waker>),
    Empty,
    Closed,
}

impl<T> Queue<T> {
    /// For one sender and one receiver at first. If it is direct, no receiver is added, and they wait one at a time.
    #[track_caller]
    pub(crate) fn new(capacity: usize, direct: bool) -> Self {
        assert!(capacity > 0, "a channel has room for at least one message");
        let messages = VecDeque::with_capacity(capacity.min(ROOM_AT_FIRST));
        let state = State { messages, senders: 1, receivers: 1, closed: false };
        Self { waiting: WaitQueue::new(state), length: AtomicUsize::new(0), capacity, direct }
    }

    /// How many messages there are, this moment.
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
                Offered::NoRoom(returned, room) => {
                    message = returned;
                    self.make_room(room);
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

    /// Sends, unless it is full.
    #[inline]
    pub(super) fn offer(&self, locked: &mut Guard<'_, T>, message: T) -> Offered<T> {
        if locked.state().closed {
            return Offered::Closed(message);
        }
        if self.direct {
            // Rule 2: the only one who receives waits, so there is nothing before this message.
            let mut message = Some(message);
            if let Some(((), waker)) = locked.grant(RECEIVERS, |payload| *payload = message.take()) {
                return Offered::Sent(Some(waker));
            }
            let Some(message) = message else { unreachable!("it was given to nobody") };
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
            let room = messages.len().saturating_mul(2).min(self.capacity);
            return Offered::NoRoom(message, room);
        }
        messages.push_back(message);
        self.length.store(messages.len(), Ordering::Relaxed);
        Offered::Sent(self.tell_one(locked))
    }

    /// Receives, if there is something.
    #[inline]
    pub(super) fn take(&self, locked: &mut Guard<'_, T>) -> Taken<T> {
        let state = locked.state();
        let Some(message) = state.messages.pop_front() else {
            return if state.closed { Taken::Closed } else { Taken::Empty };
        };
        let mut waker = None;
        // More than that are in it if one was put back.
        if state.messages.len() < self.capacity
            && let Some((next, sender)) = locked.grant(SENDERS, Option::take)
        {
            // Rule 1. There is memory: one has just been taken out.
            locked.state().messages.extend(next);
            waker = Some(sender);
        }
        self.length.store(locked.state().messages.len(), Ordering::Relaxed);
        Taken::Message(message, waker)
    }

    /// Tells the first of those who wait to receive to look.
    #[inline]
    fn tell_one(&self, locked: &mut Guard<'_, T>) -> Option<Waker> {
        locked.grant(RECEIVERS, |_| ()).map(|((), waker)| waker)
    }

    /// Rule 3, for one who was told to look and does not.
    pub(super) fn pass_on(&self) {
        let mut locked = self.waiting.lock();
        let waker = if locked.state().messages.is_empty() { None } else { self.tell_one(&mut locked) };
        drop(locked);
        wake_if_any(waker);
    }

    /// Rule 3, for one who was given a message and does not want it any more.
    pub(super) fn put_back(&self, message: T) {
        let mut message = Some(message);
        loop {
            let mut locked = self.waiting.lock();
            let messages = &mut locked.state().messages;
            let room = messages.len() + 1;
            let has_room = room <= messages.capacity();
            if has_room && let Some(message) = message.take() {
                messages.push_front(message);
                self.length.store(messages.len(), Ordering::Relaxed);
            }
            let waker = if has_room { self.tell_one(&mut locked) } else { None };
            drop(locked);
            wake_if_any(waker);
            if has_room {
                return;
            }
            self.make_room(room);
        }
    }

    /// Makes room for so many messages, without asking for memory, or giving any back, under the lock.
    #[cold]
    pub(super) fn make_room(&self, room: usize) {
        let mut roomier = VecDeque::with_capacity(room);
        let mut locked = self.waiting.lock();
        let messages = &mut locked.state().messages;
        if messages.capacity() < roomier.capacity() {
            roomier.append(messages);
            mem::swap(messages, &mut roomier);
        }
        drop(locked);
    }

    /// From now on nothing is sent. What was sent can be received.
    pub(crate) fn close(&self) {
        self.waiting.lock().state().closed = true;
        // Rule 4: those who wait get fewer. A sender finds its message where it was; a receiver looks, and finds the
        // end.
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
        // Nobody will ask for them.
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
