//! Detection of futurelocks and deadlocks, from the ledger of locks and the tree of tasks.
//!
//! **Futurelock, certain**: a future was granted permits, its waker was called, and it has not taken them.
//! Its task waits, so it was polled since and did not poll that future. And the task's last reported wait is
//! another future that wants permits of the same lock and was polled after the grant.
//!
//! **Deadlock, if it lasts**: a wait is *stuck* if the lock has at least one recorded holder, and all
//! recorded holders are tasks that wait, in the same branch, on stuck waits. Other branches of such a task
//! cannot be seen, so this is reported only when it has lasted for the limit. A cycle of one task is a
//! futurelock that is not certain.

use std::collections::{HashMap, HashSet};
use std::time::{Duration, Instant};

use super::participant::Involved;
use super::report;
use super::report::{Finding, Owned};
use super::snapshot::Snapshot;
use convoke_sync::ledger;

/// The number of checks per deadlock limit. Each check copies the ledger.
const CHECKS_PER_LIMIT: u32 = 100;

/// The futurelocks and deadlocks that a watcher has seen.
#[derive(Debug)]
pub(super) struct Deadlocks {
    limit: Duration,
    checked: Option<Instant>,
    /// Stuck waits, by when they began and were last polled: since when each is stuck, and whether it was
    /// reported.
    stuck: HashMap<(u64, u64), (Instant, bool)>,
    /// Futurelocks that were reported, by when their two waits began.
    certain: HashSet<(u64, u64)>,
}

impl Deadlocks {
    pub(super) fn new(limit: Duration) -> Self {
        Self { limit, checked: None, stuck: HashMap::new(), certain: HashSet::new() }
    }

    pub(super) fn check(&mut self, now: Instant, reports: &mut Vec<Finding>) {
        let pause = self.limit / CHECKS_PER_LIMIT;
        if self.checked.is_some_and(|at| now.saturating_duration_since(at) < pause) {
            return;
        }
        self.checked = Some(now);
        let Some(snapshot) = Snapshot::take() else {
            self.stuck.clear();
            self.certain.clear();
            return;
        };
        let certain = snapshot.certain();
        let pairs: HashSet<_> = certain.iter().map(|(waits, has)| (waits.began, has.began)).collect();
        self.certain.retain(|pair| pairs.contains(pair));
        for (waits, has) in &certain {
            if self.certain.insert((waits.began, has.began)) {
                reports.extend(snapshot.futurelock(waits, Some(has.place), Owned::Handed));
            }
        }
        let mut stuck = snapshot.stuck();
        let reported: HashSet<_> = certain.iter().map(|(waits, _)| waits.began).collect();
        stuck.retain(|waiting| !reported.contains(&waiting.began));
        if self.is_new(&stuck, now) {
            report_stuck(&snapshot, &stuck, reports);
        }
    }

    /// Returns true if some of these waits have been stuck for the limit and were not reported.
    fn is_new(&mut self, stuck: &[&ledger::Waiting], now: Instant) -> bool {
        let still: HashSet<_> = stuck.iter().map(|waiting| (waiting.began, waiting.polled)).collect();
        self.stuck.retain(|key, _| still.contains(key));
        let mut any_new = false;
        for waiting in stuck {
            let (since, reported) = self.stuck.entry((waiting.began, waiting.polled)).or_insert((now, false));
            let due = now.saturating_duration_since(*since) >= self.limit;
            any_new |= due && !*reported;
            *reported |= due;
        }
        any_new
    }
}

/// Returns the futurelocks and deadlocks of a program in which nothing can happen any more. Test kits with
/// their own clock call it when a program hangs.
#[cfg(feature = "testing")]
pub fn examine() -> Vec<Finding> {
    let mut reports = Vec::new();
    Deadlocks::new(Duration::ZERO).check(Instant::now(), &mut reports);
    reports
}

/// Reports tasks that wait for themselves one by one, and all others together.
fn report_stuck(snapshot: &Snapshot, stuck: &[&ledger::Waiting], reports: &mut Vec<Finding>) {
    let mut together = Vec::new();
    for waits in stuck {
        let mut own = snapshot.holders(waits.lock).filter(|holder| holder.owner.is_same(waits.owner));
        if let Some(holder) = own.next() {
            reports.extend(snapshot.futurelock(waits, holder.place, Owned::Held));
        } else if let Some(task) = snapshot.participant(waits.owner) {
            let holders = snapshot.holders(waits.lock);
            let held_by: Vec<(Involved, _)> = holders
                .filter_map(|holder| Some((snapshot.participant(holder.owner)?, holder.place)))
                .collect();
            together.push(report::Entangled { task, waits_at: waits.place, held_by });
        }
    }
    if !together.is_empty() {
        reports.push(Finding::Deadlock(report::Deadlock { waits: together, tree: snapshot.tree().clone() }));
    }
}
