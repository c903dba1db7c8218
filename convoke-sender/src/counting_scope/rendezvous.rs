//! Where spawned work and whoever wants its result meet: one word, and each transition says what is now to be done.
//!
//! 1. The result belongs to the work until it has completed here; then to the one who is told to deliver, take or drop it.
//! 2. The place of a consumer belongs to him until he waits; then to the one who is told to deliver to it, or to himself
//!    again if he could leave.
//! 3. There is one consumer, or somebody who abandons: not both.

use convoke_core::raw::sync::atomic::{AtomicU8, Ordering};

/// The work runs, and nobody waits yet.
const RUNNING: u8 = 0;
/// The work runs, and a consumer waits.
const WAITING: u8 = 1;
/// The work runs, and nobody wants its result.
const ABANDONED: u8 = 2;
/// The work has completed.
const DONE: u8 = 3;

/// The word.
#[derive(Debug)]
pub(super) struct ResultRendezvous(AtomicU8);

/// What the work must do with its result.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum AfterCompletion {
    /// Leave it there.
    Keep,
    /// Give it to the consumer that waits.
    Deliver,
    /// Drop it: nobody wants it.
    Discard,
}

/// What a consumer must do.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum AfterConsume {
    /// Wait: the work will deliver.
    Wait,
    /// Take the result.
    Take,
}

/// What one who goes away must do.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum AfterAbandon {
    /// Ask the work to stop.
    AskToStop,
    /// Drop the result.
    Drop,
}

impl ResultRendezvous {
    pub(super) fn new() -> Self {
        Self(AtomicU8::new(RUNNING))
    }

    /// The work has completed, and its result lies there.
    pub(super) fn complete(&self) -> AfterCompletion {
        match self.0.swap(DONE, Ordering::AcqRel) {
            WAITING => AfterCompletion::Deliver,
            ABANDONED => AfterCompletion::Discard,
            _ => AfterCompletion::Keep,
        }
    }

    /// The consumer wants the result, and his place lies there.
    pub(super) fn consume(&self) -> AfterConsume {
        match self.change(RUNNING, WAITING) {
            true => AfterConsume::Wait,
            false => AfterConsume::Take,
        }
    }

    /// The handle is dropped unused.
    pub(super) fn abandon(&self) -> AfterAbandon {
        match self.change(RUNNING, ABANDONED) {
            true => AfterAbandon::AskToStop,
            false => AfterAbandon::Drop,
        }
    }

    /// The consumer that waits wants to go. False if he cannot any more: the result is on its way to him.
    pub(super) fn leave(&self) -> bool {
        self.change(WAITING, ABANDONED)
    }

    fn change(&self, from: u8, to: u8) -> bool {
        self.0.compare_exchange(from, to, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }
}

#[cfg(all(test, not(feature = "loom")))]
mod tests {
    use super::*;

    #[test]
    fn the_work_is_told_who_wants_its_result() {
        let meeting = ResultRendezvous::new();
        assert_eq!(meeting.complete(), AfterCompletion::Keep);
        assert_eq!(meeting.consume(), AfterConsume::Take);
        let meeting = ResultRendezvous::new();
        assert_eq!(meeting.consume(), AfterConsume::Wait);
        assert_eq!(meeting.complete(), AfterCompletion::Deliver);
        assert!(!meeting.leave(), "it is on its way");
        let meeting = ResultRendezvous::new();
        assert_eq!(meeting.abandon(), AfterAbandon::AskToStop);
        assert_eq!(meeting.complete(), AfterCompletion::Discard);
    }

    #[test]
    fn a_consumer_that_left_gets_nothing_and_a_result_that_is_there_is_dropped() {
        let meeting = ResultRendezvous::new();
        assert_eq!(meeting.consume(), AfterConsume::Wait);
        assert!(meeting.leave());
        assert_eq!(meeting.complete(), AfterCompletion::Discard);
        let meeting = ResultRendezvous::new();
        assert_eq!(meeting.complete(), AfterCompletion::Keep);
        assert_eq!(meeting.abandon(), AfterAbandon::Drop);
    }
}
