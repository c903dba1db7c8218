//! The states of a scope, and who waits for its end. No unsafe and no lock in here: `shared.rs` has the lock, and does
//! what the transitions say.
//!
//! 1. Open: work may enter. Closed: a join was started, or the scope was dropped; nothing enters any more. Joined:
//!    closed, and nobody is left. There is no way back.
//! 2. Somebody waits only while somebody is there: the last to leave takes all who wait with him.
//! 3. The first panic is kept until somebody has heard of it. A drain takes it away; a join leaves its words to the
//!    others that join.

use std::collections::BTreeMap;

use convoke_core::raw::Runnable;
use convoke_core::{ExecutorRef, Panic};

use super::name::Name;
use super::roll::{Key, Roll};

/// What a scope knows.
#[derive(Debug, Default)]
pub(super) struct State {
    phase: Phase,
    roll: Roll,
    /// By their tickets, the first to wait first.
    waiting: Waiting,
    /// How many tickets were given out.
    tickets: u64,
    first_panic: Option<Told>,
    /// The scope was dropped: nobody will join any more, unless he waits already.
    abandoned: bool,
}

/// Rule 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Phase {
    #[default]
    Open,
    Closed,
    Joined,
}

/// Somebody who waits until nobody is left: a join or a drain.
#[derive(Debug)]
pub(super) struct Waiter {
    /// Where it goes on.
    pub(super) executor: ExecutorRef,
    pub(super) runnable: Runnable,
}

/// Those who wait, each found again by its ticket.
pub(super) type Waiting = BTreeMap<u64, Waiter>;

/// What one who wants to wait must now do.
#[derive(Debug)]
#[must_use = "a wait that is over must be ended by who asked"]
pub(super) enum AfterWait {
    /// Go on at once: nobody is there.
    Over(Waiter),
    /// Nothing: the last to leave sees to it. By this ticket it can be called back.
    Waits(u64),
}

/// The first panic: its payload, until it was given to somebody, and its words.
#[derive(Debug)]
struct Told {
    panic: Option<Panic>,
    words: String,
}

/// What was left in a scope when it was dropped.
#[derive(Debug)]
pub(super) struct Left {
    pub(super) names: Vec<Name>,
    pub(super) panic: Option<Panic>,
}

impl State {
    /// Work wants to enter. `None` if the scope is not open any more.
    pub(super) fn enter(&mut self, name: Name) -> Option<Key> {
        (self.phase == Phase::Open).then(|| self.roll.enter(name))
    }

    /// Work leaves. Those who waited for it are to be woken.
    #[must_use = "those who waited must be woken"]
    pub(super) fn leave(&mut self, key: Key) -> Waiting {
        self.roll.leave(key);
        if self.roll.len() > 0 {
            return Waiting::new();
        }
        self.end_if_closed();
        core::mem::take(&mut self.waiting)
    }

    /// A join was started: closes the scope.
    pub(super) fn join(&mut self, waiter: Waiter) -> AfterWait {
        if self.phase == Phase::Open {
            self.phase = Phase::Closed;
        }
        self.drain(waiter)
    }

    /// A drain was started: waits, and closes nothing.
    pub(super) fn drain(&mut self, waiter: Waiter) -> AfterWait {
        if self.roll.len() > 0 {
            let ticket = self.tickets;
            self.tickets += 1;
            self.waiting.insert(ticket, waiter);
            return AfterWait::Waits(ticket);
        }
        self.end_if_closed();
        AfterWait::Over(waiter)
    }

    /// One who waits does not want to any more. `None` if his wait has ended already; else he is to be woken.
    pub(super) fn withdraw(&mut self, ticket: u64) -> Option<Waiter> {
        self.waiting.remove(&ticket)
    }

    /// Work has panicked, and nobody but the scope can hear of it. Hands the panic back if it is too late for that. One that is
    /// not the first is of no use: it is returned to be dropped without the lock, for its payload may be anybody's.
    pub(super) fn panicked(&mut self, name: Option<Name>, panic: Panic) -> Result<Option<Panic>, Panic> {
        if self.phase == Phase::Joined || (self.abandoned && self.waiting.is_empty()) {
            return Err(panic);
        }
        if self.first_panic.is_some() {
            return Ok(Some(panic));
        }
        let words = match name {
            Some(name) => format!("{name} panicked: {}", panic.message()),
            None => panic.message().to_owned(),
        };
        self.first_panic = Some(Told { panic: Some(named(panic, &words)), words });
        Ok(None)
    }

    /// The name of work that is here.
    pub(super) fn name(&self, key: &Key) -> Option<Name> {
        self.roll.name(key)
    }

    /// The panic that a join hears of; the words stay for other joins.
    pub(super) fn panic_for_join(&mut self) -> Option<Panic> {
        let told = self.first_panic.as_mut()?;
        Some(told.panic.take().unwrap_or_else(|| Panic::new(told.words.clone())))
    }

    /// The panic that a drain hears of, and nobody after it.
    pub(super) fn panic_for_drain(&mut self) -> Option<Panic> {
        self.first_panic.take()?.panic
    }

    /// The scope is dropped: closes it, and says what is left.
    pub(super) fn abandon(&mut self) -> Left {
        self.abandoned = true;
        if self.phase == Phase::Open {
            self.phase = Phase::Closed;
        }
        self.end_if_closed();
        Left { names: self.roll.names(), panic: self.panic_for_drain() }
    }

    /// Where it stands.
    pub(super) fn phase(&self) -> Phase {
        self.phase
    }

    /// How many are here.
    pub(super) fn count(&self) -> usize {
        self.roll.len()
    }

    fn end_if_closed(&mut self) {
        if self.phase == Phase::Closed && self.roll.len() == 0 {
            self.phase = Phase::Joined;
        }
    }
}

/// The panic with the name of its work in its words. A payload that is not text is left as it is: somebody may know
/// its type.
fn named(panic: Panic, words: &str) -> Panic {
    if panic.is_text() { Panic::new(words) } else { panic }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAME: Name = Name::Given("work");

    #[test]
    fn the_first_panic_is_kept_with_its_name_and_a_drain_takes_it_away() {
        let mut state = State::default();
        state.panicked(Some(NAME), Panic::new("one")).unwrap();
        state.panicked(Some(NAME), Panic::new("two")).unwrap();
        for _ in 0..2 {
            assert_eq!(state.panic_for_join().unwrap().message(), "`work` panicked: one");
        }
        state.panic_for_drain();
        assert!(state.panic_for_join().is_none());
    }

    #[test]
    fn a_panic_that_nobody_will_hear_of_is_handed_back() {
        let mut dropped = State::default();
        let key = dropped.enter(NAME).unwrap();
        assert_eq!(dropped.abandon().names, [NAME]);
        assert!(dropped.panicked(Some(NAME), Panic::new("late")).is_err());
        assert!(dropped.leave(key).is_empty());
        assert_eq!((dropped.phase(), dropped.enter(NAME)), (Phase::Joined, None));
        assert!(dropped.panicked(Some(NAME), Panic::new("later")).is_err());
    }
}
