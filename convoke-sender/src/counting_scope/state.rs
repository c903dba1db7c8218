//! The state machine of a scope, and its waiters. It has neither unsafe code nor a lock: `shared.rs` has the
//! lock, and does what the transitions return.
//!
//! 1. Open: work may enter. Closed: a join was started, or the scope was dropped; no work enters any more.
//!    Joined: closed, and no work is left. A scope never goes back.
//! 2. There are waiters only while there is work: the last work to leave takes all waiters with it.
//! 3. The first panic is stored until it is reported. A drain takes it; a join takes the payload and leaves
//!    the message to other joins.

use std::collections::{BTreeMap, BTreeSet};

use convoke_core::raw::Runnable;
use convoke_core::{ExecutorRef, Panic};

use super::slab::{Key, NameSlab};
use crate::async_scope::WorkName;

/// The state of a scope.
#[derive(Debug, Default)]
pub(super) struct ScopeState {
    phase: Phase,
    members: NameSlab,
    /// The waiters by ticket, in the order in which they came.
    waiting: Waiting,
    /// The tickets of waiters that a stop request removed and that have not ended yet.
    withdrawn: BTreeSet<u64>,
    /// The number of tickets given out.
    tickets: u64,
    first_panic: Option<FirstPanic>,
    /// True if the scope was dropped: no join comes any more, except those that wait already.
    abandoned: bool,
}

/// The phase of a scope (rule 1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Phase {
    #[default]
    Open,
    Closed,
    Joined,
}

/// A join or a drain that waits until no work is left.
#[derive(Debug)]
pub(super) struct Waiter {
    /// The executor on which it is resumed.
    pub(super) executor: ExecutorRef,
    pub(super) runnable: Runnable,
}

/// The waiters by ticket.
pub(super) type Waiting = BTreeMap<u64, Waiter>;

/// The next step of a caller that wants to wait.
#[derive(Debug)]
#[must_use = "if the wait is over, the caller must end it"]
pub(super) enum AfterWait {
    /// Resume at once: no work is left.
    Over(Waiter),
    /// Nothing: the last work to leave wakes the waiter. The ticket withdraws it.
    Waits(u64),
}

/// The first panic: its payload, until that was reported, and its message.
#[derive(Debug)]
struct FirstPanic {
    payload: Option<Panic>,
    message: String,
}

/// The content of a scope that was dropped.
#[derive(Debug)]
pub(super) struct Left {
    pub(super) names: Vec<WorkName>,
    pub(super) panic: Option<Panic>,
}

impl ScopeState {
    /// Adds work. Returns `None` if the scope is not open any more.
    pub(super) fn enter(&mut self, name: WorkName) -> Option<Key> {
        (self.phase == Phase::Open).then(|| self.members.enter(name))
    }

    /// Removes work. Returns the waiters, which the caller must wake, if it was the last work.
    #[must_use = "the waiters must be woken"]
    pub(super) fn leave(&mut self, key: Key) -> Waiting {
        self.members.leave(key);
        if self.members.len() > 0 {
            return Waiting::new();
        }
        self.end_if_closed();
        core::mem::take(&mut self.waiting)
    }

    /// Closes the scope and adds a waiter, for a join.
    pub(super) fn join(&mut self, waiter: Waiter) -> AfterWait {
        if self.phase == Phase::Open {
            self.phase = Phase::Closed;
        }
        self.drain(waiter)
    }

    /// Adds a waiter, for a drain, and leaves the scope open.
    pub(super) fn drain(&mut self, waiter: Waiter) -> AfterWait {
        if self.members.len() > 0 {
            let ticket = self.tickets;
            self.tickets += 1;
            self.waiting.insert(ticket, waiter);
            return AfterWait::Waits(ticket);
        }
        self.end_if_closed();
        AfterWait::Over(waiter)
    }

    /// Removes a waiter, because of a stop request. Returns `None` if its wait has ended already; else the
    /// caller must wake it.
    pub(super) fn withdraw(&mut self, ticket: u64) -> Option<Waiter> {
        let waiter = self.waiting.remove(&ticket)?;
        self.withdrawn.insert(ticket);
        Some(waiter)
    }

    /// Returns true, once, if the waiter with this ticket was removed by [`withdraw`](ScopeState::withdraw).
    pub(super) fn was_withdrawn(&mut self, ticket: u64) -> bool {
        self.withdrawn.remove(&ticket)
    }

    /// Stores a panic, if it is the first. Returns it as an error if it is too late for that. Returns a
    /// second panic to the caller, which drops it without the lock, because its payload may run code of the
    /// program.
    pub(super) fn panicked(&mut self, name: Option<WorkName>, panic: Panic) -> Result<Option<Panic>, Panic> {
        if self.phase == Phase::Joined || (self.abandoned && self.waiting.is_empty()) {
            return Err(panic);
        }
        if self.first_panic.is_some() {
            return Ok(Some(panic));
        }
        let message = match name {
            Some(name) => format!("{name} panicked: {}", panic.message()),
            None => panic.message().to_owned(),
        };
        let payload = Some(named(panic, &message));
        self.first_panic = Some(FirstPanic { payload, message });
        Ok(None)
    }

    /// Returns the name of work in the scope.
    pub(super) fn name(&self, key: &Key) -> Option<WorkName> {
        self.members.name(key)
    }

    /// Returns the panic for a join; the message stays for other joins.
    pub(super) fn panic_for_join(&mut self) -> Option<Panic> {
        let first = self.first_panic.as_mut()?;
        Some(first.payload.take().unwrap_or_else(|| Panic::new(first.message.clone())))
    }

    /// Takes the panic, for a drain: it is not reported again.
    pub(super) fn panic_for_drain(&mut self) -> Option<Panic> {
        self.first_panic.take()?.payload
    }

    /// Closes the scope, which was dropped, and returns its content.
    pub(super) fn abandon(&mut self) -> Left {
        self.abandoned = true;
        if self.phase == Phase::Open {
            self.phase = Phase::Closed;
        }
        self.end_if_closed();
        Left { names: self.members.names(), panic: self.panic_for_drain() }
    }

    /// Returns the phase.
    pub(super) fn phase(&self) -> Phase {
        self.phase
    }

    /// Returns the number of pieces of work in the scope.
    pub(super) fn count(&self) -> usize {
        self.members.len()
    }

    fn end_if_closed(&mut self) {
        if self.phase == Phase::Closed && self.members.len() == 0 {
            self.phase = Phase::Joined;
        }
    }
}

/// Adds the name of the work to the message of a panic. A payload that is not text is left unchanged, because
/// its receiver may know the type.
fn named(panic: Panic, message: &str) -> Panic {
    if panic.is_text() { Panic::new(message) } else { panic }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAME: WorkName = WorkName::Given("work");

    #[test]
    fn the_first_panic_is_stored_with_its_name_and_a_drain_takes_it_away() {
        let mut state = ScopeState::default();
        state.panicked(Some(NAME), Panic::new("one")).unwrap();
        state.panicked(Some(NAME), Panic::new("two")).unwrap();
        for _ in 0..2 {
            assert_eq!(state.panic_for_join().unwrap().message(), "`work` panicked: one");
        }
        state.panic_for_drain();
        assert!(state.panic_for_join().is_none());
    }

    #[test]
    fn a_panic_that_will_not_be_reported_is_returned() {
        let mut dropped = ScopeState::default();
        let key = dropped.enter(NAME).unwrap();
        assert_eq!(dropped.abandon().names, [NAME]);
        assert!(dropped.panicked(Some(NAME), Panic::new("late")).is_err());
        assert!(dropped.leave(key).is_empty());
        assert_eq!((dropped.phase(), dropped.enter(NAME)), (Phase::Joined, None));
        assert!(dropped.panicked(Some(NAME), Panic::new("later")).is_err());
    }
}
