//! A ledger of sent and received messages: none may be lost or duplicated, and the messages of one sender
//! keep their order.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The maximum number of messages of one sender. A message is `sender * OF_ONE + number`.
const OF_ONE: u32 = 1000;

/// A ledger of messages. Clones share it.
#[derive(Clone, Default)]
pub(super) struct Ledger(Arc<Mutex<Pages>>);

#[derive(Default)]
struct Pages {
    sent: Vec<u32>,
    received: Vec<u32>,
}

/// Returns message `number` of `sender`.
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

    /// Checks that all sent messages were received once.
    #[track_caller]
    pub(super) fn check(&self) {
        let pages = self.pages();
        let mut received = pages.received.clone();
        received.sort_unstable();
        let before = received.len();
        received.dedup();
        assert_eq!(received.len(), before, "a message arrived twice: {:?}", pages.received);
        for message in &pages.sent {
            assert!(received.contains(message), "{message} was sent and is lost: {:?}", pages.received);
        }
    }

    /// Checks like [`check`](Ledger::check), and that the messages of each sender were received in order.
    /// Valid if there is only one receiver.
    #[track_caller]
    pub(super) fn check_order(&self) {
        self.check();
        let pages = self.pages();
        let mut by_sender = pages.received.clone();
        by_sender.sort_by_key(|message| message / OF_ONE);
        assert!(by_sender.is_sorted(), "messages of one sender overtook each other: {:?}", pages.received);
    }
}
