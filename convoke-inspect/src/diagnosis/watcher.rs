//! Looking: what is wrong this moment, and what has been for long. Without a thread and without a clock: the watchdog
//! brings both, and so does a test.

use std::time::Instant;

use super::entangled::Entanglements;
use super::limits::Limits;
use super::quiet::Silence;
use super::report::Report;
use super::stalls::Stalls;
use convoke_core::raw::watching::Mark;
use convoke_sync::ledger;

/// Looks at the tasks of the process when it is told to, and says what is wrong: see
/// [`Diagnosis::by_hand`](super::Diagnosis::by_hand). While it exists, those who wait for locks and permits are noted down.
#[derive(Debug)]
#[must_use = "the diagnosis ends when this is dropped"]
pub struct Watcher {
    /// None if too many watch already.
    stalls: Option<Stalls>,
    entanglements: Entanglements,
    silence: Silence,
    _noting: ledger::Noting,
}

impl Watcher {
    pub(super) fn new(limits: &Limits) -> Self {
        Self {
            stalls: Mark::take().map(|mark| Stalls::new(mark, limits.stall)),
            entanglements: Entanglements::new(limits.deadlock),
            silence: Silence::new(limits.quiet),
            _noting: ledger::Noting::begin(limits.every_lock),
        }
    }

    /// Whether stalls are looked for. They are not if too many others look for them already.
    pub(super) fn sees_stalls(&self) -> bool {
        self.stalls.is_some()
    }

    /// What is wrong at this time, and was not reported before. It is for the caller to come often: what is seen at one
    /// look only has lasted for no time.
    pub fn look(&mut self, now: Instant) -> Vec<Report> {
        let mut reports = Vec::new();
        let ran = self.stalls.as_mut().is_none_or(|stalls| stalls.look(now, &mut reports));
        self.entanglements.look(now, &mut reports);
        self.silence.look(ran, now, &mut reports);
        reports
    }
}
