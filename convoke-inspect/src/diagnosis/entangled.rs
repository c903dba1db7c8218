//! Finding tasks that wait for themselves or for each other, out of what the ledger has and the tree shows.
//!
//! **Futurelock, for certain**: a future was granted permits, its waker was called, and it has not taken them. Its task waits:
//! so it has been polled since, and did not poll that future. And what it waits for, as it said last, is another future
//! that wants permits of the same lock and was polled after that.
//!
//! **Deadlock, if it lasts**: a wait is *stuck* if somebody is noted who has permits of that lock, and all who are noted are in
//! tasks which wait in turn, in the same branch, for what is stuck. What else such a task does at the same time cannot be
//! seen; so this is reported only when it has stayed so for as long as the limit says. A ring of one task is a futurelock of
//! which one cannot be certain.

use std::collections::{HashMap, HashSet};
use std::time::{Duration, Instant};

use super::involved::Involved;
use super::report;
use super::report::{Owned, Report};
use super::scene::Scene;
use convoke_sync::ledger;

/// Of the limit for deadlocks: this part of it passes between two looks. Each copies the ledger.
const LOOKS_PER_LIMIT: u32 = 100;

/// What one watcher has seen.
#[derive(Debug)]
pub(super) struct Entanglements {
    limit: Duration,
    looked: Option<Instant>,
    /// By when the wait began and when it was polled last: since when it is stuck, and whether that was reported.
    stuck: HashMap<(u64, u64), (Instant, bool)>,
    /// By when the two waits began: reported.
    certain: HashSet<(u64, u64)>,
}

impl Entanglements {
    pub(super) fn new(limit: Duration) -> Self {
        Self { limit, looked: None, stuck: HashMap::new(), certain: HashSet::new() }
    }

    pub(super) fn look(&mut self, now: Instant, reports: &mut Vec<Report>) {
        let pause = self.limit / LOOKS_PER_LIMIT;
        if self.looked.is_some_and(|at| now.saturating_duration_since(at) < pause) {
            return;
        }
        self.looked = Some(now);
        let Some(scene) = Scene::look() else {
            self.stuck.clear();
            self.certain.clear();
            return;
        };
        let certain = scene.certain();
        let pairs: HashSet<_> = certain.iter().map(|(waits, has)| (waits.began, has.began)).collect();
        self.certain.retain(|pair| pairs.contains(pair));
        for (waits, has) in &certain {
            if self.certain.insert((waits.began, has.began)) {
                reports.extend(scene.futurelock(waits, Some(has.place), Owned::Handed));
            }
        }
        let mut stuck = scene.stuck();
        let reported: HashSet<_> = certain.iter().map(|(waits, _)| waits.began).collect();
        stuck.retain(|waiting| !reported.contains(&waiting.began));
        if self.is_news(&stuck, now) {
            report_stuck(&scene, &stuck, reports);
        }
    }

    /// Whether some of these have been stuck for long, and were not reported.
    fn is_news(&mut self, stuck: &[&ledger::Waiting], now: Instant) -> bool {
        let still: HashSet<_> = stuck.iter().map(|waiting| (waiting.began, waiting.polled)).collect();
        self.stuck.retain(|key, _| still.contains(key));
        let mut news = false;
        for waiting in stuck {
            let (since, reported) = self.stuck.entry((waiting.began, waiting.polled)).or_insert((now, false));
            let due = now.saturating_duration_since(*since) >= self.limit;
            news |= due && !*reported;
            *reported |= due;
        }
        news
    }
}

/// What is wrong if nothing can happen any more: a program that hangs on a clock of its own asks for this.
#[cfg(feature = "testing")]
pub fn examine() -> Vec<Report> {
    let mut reports = Vec::new();
    Entanglements::new(Duration::ZERO).look(Instant::now(), &mut reports);
    reports
}

/// Those who wait for themselves one by one, all others together.
fn report_stuck(scene: &Scene, stuck: &[&ledger::Waiting], reports: &mut Vec<Report>) {
    let mut together = Vec::new();
    for waits in stuck {
        let mut own = scene.holders(waits.lock).filter(|holder| holder.owner.is_same(waits.owner));
        if let Some(holder) = own.next() {
            reports.extend(scene.futurelock(waits, holder.place, Owned::Held));
        } else if let Some(task) = scene.involved(waits.owner) {
            let holders = scene.holders(waits.lock);
            let held_by: Vec<(Involved, _)> =
                holders.filter_map(|holder| Some((scene.involved(holder.owner)?, holder.place))).collect();
            together.push(report::Entangled { task, waits_at: waits.place, held_by });
        }
    }
    if !together.is_empty() {
        reports.push(Report::Deadlock(report::Deadlock { waits: together, tree: scene.tree().clone() }));
    }
}
