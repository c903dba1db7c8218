//! The messages of a broadcast, with the number of receivers that each is still to reach. Both kinds of
//! broadcast channels have such a ring, under the lock of their queue.
//!
//! A message lies on a *shelf*, behind a reference count, because user code clones it, and that must not
//! happen under the lock. The shelf of the last receiver is used for a later message, so that a channel in
//! use does not allocate.

use core::mem;
use std::collections::VecDeque;
use std::sync::Arc;

use super::wait_queue::WaitQueue;

/// The part of a broadcast channel that its two halves share.
pub(super) type Shared<T> = WaitQueue<Ring<T>, (), 2>;

// Indices of the two wait lists.
pub(super) const SENDERS: usize = 0;
pub(super) const RECEIVERS: usize = 1;

/// Storage of a message. `None` only while it is spare.
pub(super) type Shelf<T> = Arc<Option<T>>;

/// Messages that some receiver has not received, and the counts of senders and receivers.
pub(super) struct Ring<T> {
    entries: VecDeque<Entry<T>>,
    /// Empty shelves that have one owner, at most as many as there can be messages.
    spare: Vec<Shelf<T>>,
    /// Sequence number of the first message, or of the next message to be sent if there is none.
    oldest: u64,
    pub(super) capacity: usize,
    pub(super) senders: usize,
    pub(super) receivers: usize,
    pub(super) closed: bool,
}

struct Entry<T> {
    shelf: Shelf<T>,
    /// Number of receivers that have not received it yet.
    left: usize,
}

/// Result of an attempt to receive.
pub(super) enum RingTaken<T> {
    /// The message, which others have received, or still receive. A slot is free if `is_last` is true.
    Message {
        message: RingMessage<T>,
        is_last: bool,
    },
    /// The number of messages that were dropped before this receiver has received them.
    Missed(u64),
    Empty,
    Closed,
}

/// A received message.
pub(super) enum RingMessage<T> {
    /// The message alone. Its shelf is freed with it if there are enough spare ones.
    Owned { message: T, _surplus: Option<Shelf<T>> },
    /// Others read it at this moment.
    Shared(Shelf<T>),
}

impl<T: Clone> RingMessage<T> {
    /// Returns the message. Clones it if necessary, so the lock must not be held.
    pub(super) fn into_message(self) -> T {
        match self {
            Self::Owned { message, .. } => message,
            Self::Shared(shelf) => match &*shelf {
                Some(message) => message.clone(),
                None => unreachable!("a shelf in use has a message"),
            },
        }
    }
}

impl<T> Ring<T> {
    #[track_caller]
    pub(super) fn new(capacity: usize) -> Self {
        assert!(capacity > 0, "the capacity of a channel must be at least 1");
        let (entries, spare) = (VecDeque::with_capacity(capacity), Vec::with_capacity(capacity));
        Self { entries, spare, oldest: 0, capacity, senders: 1, receivers: 1, closed: false }
    }

    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Returns true if no message can be sent: the channel is closed, or has no receivers.
    pub(super) fn is_over(&self) -> bool {
        self.closed || self.receivers == 0
    }

    pub(super) fn is_full(&self) -> bool {
        self.entries.len() >= self.capacity
    }

    /// Returns the sequence number that the next message will get.
    pub(super) fn end(&self) -> u64 {
        self.oldest + self.entries.len() as u64
    }

    /// Queues a message for all current receivers. The ring is not full.
    pub(super) fn push(&mut self, shelf: Shelf<T>) {
        self.entries.push_back(Entry { shelf, left: self.receivers });
    }

    /// Removes the oldest message, which some receivers then miss. The caller must drop the result after it
    /// has released the lock.
    #[must_use = "dropped without the lock"]
    pub(super) fn evict(&mut self) -> Option<RingMessage<T>> {
        let evicted = self.entries.pop_front()?;
        self.oldest += 1;
        Some(self.clear(evicted.shelf))
    }

    /// Takes the message with sequence number `next`, counts it as received, and advances `next`.
    pub(super) fn take(&mut self, next: &mut u64) -> RingTaken<T> {
        if let missed @ 1.. = self.oldest.saturating_sub(*next) {
            *next = self.oldest;
            return RingTaken::Missed(missed);
        }
        let Some(entry) = self.entries.get_mut((*next - self.oldest) as usize) else {
            return if self.closed { RingTaken::Closed } else { RingTaken::Empty };
        };
        *next += 1;
        entry.left -= 1;
        if entry.left > 0 {
            return RingTaken::Message { message: RingMessage::Shared(entry.shelf.clone()), is_last: false };
        }
        // A receiver that is left at an earlier message is left at this one, too. So there is no earlier one.
        let Some(entry) = self.entries.pop_front() else { unreachable!("the entry was found above") };
        self.oldest += 1;
        RingTaken::Message { message: self.clear(entry.shelf), is_last: true }
    }

    /// Takes the message off a shelf, and keeps the shelf, unless others still read it.
    fn clear(&mut self, mut shelf: Shelf<T>) -> RingMessage<T> {
        match Arc::get_mut(&mut shelf).and_then(Option::take) {
            Some(message) => {
                // The spare ones never need more memory than was allocated at first.
                if self.spare.len() == self.capacity {
                    return RingMessage::Owned { message, _surplus: Some(shelf) };
                }
                self.spare.push(shelf);
                RingMessage::Owned { message, _surplus: None }
            }
            None => RingMessage::Shared(shelf),
        }
    }

    /// Counts another receiver for the messages from sequence number `next` on.
    pub(super) fn add_receiver(&mut self, next: u64) {
        self.receivers += 1;
        let before = next.saturating_sub(self.oldest) as usize;
        self.entries.iter_mut().skip(before).for_each(|entry| entry.left += 1);
    }
}

/// Puts a message on a shelf, to be pushed.
pub(super) fn shelve<T>(shared: &Shared<T>, message: T) -> Shelf<T> {
    let spare = shared.lock().state().spare.pop();
    match spare {
        None => Arc::new(Some(message)),
        Some(mut shelf) => match Arc::get_mut(&mut shelf) {
            Some(place) => {
                *place = Some(message);
                shelf
            }
            None => unreachable!("a spare shelf has one owner"),
        },
    }
}

/// Takes a message that was not pushed off its shelf.
pub(super) fn unshelve<T>(mut shelf: Shelf<T>) -> T {
    let Some(message) = Arc::get_mut(&mut shelf).and_then(mem::take) else {
        unreachable!("the message was never pushed, so its shelf has one owner")
    };
    message
}
