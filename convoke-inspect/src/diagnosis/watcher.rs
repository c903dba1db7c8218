//! One check of everything. It has no thread and no clock: the watchdog brings both, and so does a test.

use std::time::Instant;

use super::deadlocks::Deadlocks;
use super::idle::IdleCheck;
use super::limits::Limits;
#[cfg(not(feature = "loom"))]
use super::report::Abandoned;
use super::report::Finding;
use super::stalls::Stalls;
use convoke_core::raw::watching::PolledMark;
use convoke_sync::ledger;
#[cfg(not(feature = "loom"))]
use convoke_task::raw::take_abandoned;

/// A checker of the tasks of the process that the caller drives: see
/// [`Diagnosis::by_hand`](super::Diagnosis::by_hand). While it exists, locks record their waiters.
#[derive(Debug)]
#[must_use = "the diagnosis ends when this is dropped"]
pub struct Watcher {
    /// None if too many watchers exist already.
    stalls: Option<Stalls>,
    deadlocks: Deadlocks,
    idle: IdleCheck,
    _noting: ledger::Noting,
}

impl Watcher {
    pub(super) fn new(limits: &Limits) -> Self {
        Self {
            stalls: PolledMark::take().map(|mark| Stalls::new(mark, limits.stall)),
            deadlocks: Deadlocks::new(limits.deadlock),
            idle: IdleCheck::new(limits.quiet),
            _noting: ledger::Noting::begin(limits.every_lock),
        }
    }

    /// Returns true if it detects stalls. It does not if too many other watchers do already.
    pub(super) fn detects_stalls(&self) -> bool {
        self.stalls.is_some()
    }

    /// Checks the process, and returns the problems that were not reported before. Call it periodically: a
    /// problem that is seen in one check only has lasted for no time.
    pub fn check(&mut self, now: Instant) -> Vec<Finding> {
        let mut reports = Vec::new();
        let ran = self.stalls.as_mut().is_none_or(|stalls| stalls.check(now, &mut reports));
        self.deadlocks.check(now, &mut reports);
        self.idle.check(ran, now, &mut reports);
        #[cfg(not(feature = "loom"))]
        reports
            .extend(take_abandoned().into_iter().map(|location| Finding::Abandoned(Abandoned { location })));
        reports
    }
}
