//! What was sent for certain and what was received: nothing is lost, nothing arrives twice, and the messages of one sender keep
//! their order.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// How many messages a sender may send: the rest of a message's number is the sender's.
const OF_ONE: u32 = 1000;

/// Clones are the same ledger.
#[derive(Clone, Default)]
pub(super) struct Ledger(Arc<Mutex<Pages>>);

#[derive(Default)]
struct Pages {
    sent: Vec<u32>,
    received: Vec<u32>,
}

/// The message with this number of this sender.
pub(super) fn message(sender: u32, number: u32) -> u32 {
    sender * OF_ONE + number
}

impl Ledger {
    fn pages(&self) -> MutexGuard<'_, Pages> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn sent(&self, message: u32) {
        self.pages().sent.push(message);
    }

    pub(super) fn received(&self, message: u32) {
        self.pages().received.push(message);
    }

    /// All that could be received was.
    #[track_caller]
    pub(super) fn check(&self) {
        let pages = self.pages();
        let mut received = pages.received.clone();
        received.sort_unstable();
        let before = received.len();
        received.dedup();
        assert_eq!(received.len(), before, "something arrived twice: {:?}", pages.received);
        for message in &pages.sent {
            assert!(received.contains(message), "{message} was sent and is lost: {:?}", pages.received);
        }
    }

    /// The same, and one has received them all: then the messages of each sender came in their order.
    #[track_caller]
    pub(super) fn check_order(&self) {
        self.check();
        let pages = self.pages();
        let mut by_sender = pages.received.clone();
        by_sender.sort_by_key(|message| message / OF_ONE);
        assert!(by_sender.is_sorted(), "messages of one sender overtook each other: {:?}", pages.received);
    }
}
