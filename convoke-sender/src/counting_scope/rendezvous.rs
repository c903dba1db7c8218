//! The rendezvous of spawned work and the consumer of its result: one atomic word, whose transitions return
//! what the caller must do next.
//!
//! 1. The result belongs to the work until it has called `complete`; then to the caller that is told to
//!    deliver, take or drop it.
//! 2. The consumer's slot belongs to the consumer until it waits; then to the caller that is told to deliver
//!    to it, or to the consumer again if it could leave.
//! 3. There is either one consumer, or one caller that abandons the result: not both.

use convoke_core::raw::sync::atomic::{AtomicU8, Ordering};

/// The work runs, and no consumer waits yet.
const RUNNING: u8 = 0;
/// The work runs, and a consumer waits.
const WAITING: u8 = 1;
/// The work runs, and its result is not wanted.
const ABANDONED: u8 = 2;
/// The work has completed.
const DONE: u8 = 3;

/// The state word.
#[derive(Debug)]
pub(super) struct ResultRendezvous(AtomicU8);

/// The next step of the work with its result.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum AfterCompletion {
    /// Leave it in its cell.
    Keep,
    /// Give it to the waiting consumer.
    Deliver,
    /// Drop it: it is not wanted.
    Discard,
}

/// The next step of a consumer.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum AfterConsume {
    /// Wait: the work will deliver.
    Wait,
    /// Take the result.
    Take,
}

/// The next step of a caller that abandons the result.
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

    /// Ends the work, whose result is in its cell.
    pub(super) fn complete(&self) -> AfterCompletion {
        match self.0.swap(DONE, Ordering::AcqRel) {
            WAITING => AfterCompletion::Deliver,
            ABANDONED => AfterCompletion::Discard,
            _ => AfterCompletion::Keep,
        }
    }

    /// Asks for the result, for the consumer, which is in its cell.
    pub(super) fn consume(&self) -> AfterConsume {
        match self.change(RUNNING, WAITING) {
            true => AfterConsume::Wait,
            false => AfterConsume::Take,
        }
    }

    /// Abandons the result: the handle is dropped unused.
    pub(super) fn abandon(&self) -> AfterAbandon {
        match self.change(RUNNING, ABANDONED) {
            true => AfterAbandon::AskToStop,
            false => AfterAbandon::Drop,
        }
    }

    /// Lets the waiting consumer leave. Returns false if it cannot any more, because the result is being
    /// delivered.
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
        let rendezvous = ResultRendezvous::new();
        assert_eq!(rendezvous.complete(), AfterCompletion::Keep);
        assert_eq!(rendezvous.consume(), AfterConsume::Take);
        let rendezvous = ResultRendezvous::new();
        assert_eq!(rendezvous.consume(), AfterConsume::Wait);
        assert_eq!(rendezvous.complete(), AfterCompletion::Deliver);
        assert!(!rendezvous.leave(), "the result is being delivered");
        let rendezvous = ResultRendezvous::new();
        assert_eq!(rendezvous.abandon(), AfterAbandon::AskToStop);
        assert_eq!(rendezvous.complete(), AfterCompletion::Discard);
    }

    #[test]
    fn a_consumer_that_left_gets_nothing_and_a_result_that_is_there_is_dropped() {
        let rendezvous = ResultRendezvous::new();
        assert_eq!(rendezvous.consume(), AfterConsume::Wait);
        assert!(rendezvous.leave());
        assert_eq!(rendezvous.complete(), AfterCompletion::Discard);
        let rendezvous = ResultRendezvous::new();
        assert_eq!(rendezvous.complete(), AfterCompletion::Keep);
        assert_eq!(rendezvous.abandon(), AfterAbandon::Drop);
    }
}
