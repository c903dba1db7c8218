//! What a program that is explored promises, and whether it was kept.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Given to a program that is explored: it promises clean-up with it. Clones are the same probe.
#[derive(Clone, Debug)]
pub struct Probe(Arc<Mutex<Ledger>>);

#[derive(Debug, Default)]
struct Ledger {
    promises: BTreeMap<Promise, Count>,
    only_stopped: bool,
    /// Who makes promises now, if there are several.
    who: u64,
    /// What each of them has not kept yet.
    due: BTreeMap<(u64, Promise), usize>,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Promise {
    Drop(String),
    CleanUp(String),
}

impl Promise {
    /// None comes before it.
    const FIRST: Self = Self::Drop(String::new());
}

#[derive(Debug, Default)]
struct Count {
    came: usize,
    went: usize,
    /// So many of those that came need not go, and may.
    excused: usize,
    /// It was cleaned up when there was nothing to clean up.
    too_often: bool,
}

/// Must be dropped before the program ends: see [`Probe::must_drop`].
#[derive(Debug)]
#[must_use = "it is kept where it should be dropped"]
pub struct MustDrop {
    probe: Probe,
    what: Promise,
    who: u64,
}

impl Probe {
    /// One without promises, for whoever runs a program by himself.
    pub fn new() -> Self {
        Self(Arc::default())
    }

    /// Something to be put where a resource would be, that must be dropped before the program ends.
    pub fn must_drop(&self, what: impl Into<String>) -> MustDrop {
        let what = Promise::Drop(what.into());
        let who = self.came(what.clone());
        MustDrop { probe: self.clone(), what, who }
    }

    /// A resource was acquired. From now on its clean-up is due.
    pub fn acquired(&self, what: impl Into<String>) {
        self.came(Promise::CleanUp(what.into()));
    }

    /// It was cleaned up. This must be so once for each time that it was acquired.
    pub fn cleaned_up(&self, what: impl Into<String>) {
        let who = self.ledger().who;
        self.went(Promise::CleanUp(what.into()), who);
    }

    /// Calls `f`, which promises in the name of this one: for whoever runs several programs, of which one may be
    /// [excused](Probe::excuse).
    pub fn in_the_name_of<R>(&self, who: u64, f: impl FnOnce() -> R) -> R {
        struct Before<'a>(&'a Probe, u64);

        impl Drop for Before<'_> {
            fn drop(&mut self) {
                self.0.ledger().who = self.1;
            }
        }

        let before = core::mem::replace(&mut self.ledger().who, who);
        let _before = Before(self, before);
        f()
    }

    /// What this one has promised and not kept until now need not be kept: it has crashed.
    pub fn excuse(&self, who: u64) {
        let mut ledger = self.ledger();
        let mut others = ledger.due.split_off(&(who, Promise::FIRST));
        if let Some(next) = who.checked_add(1) {
            let mut later = others.split_off(&(next, Promise::FIRST));
            ledger.due.append(&mut later);
        }
        for ((_, what), due) in others {
            ledger.promises.entry(what).or_default().excused += due;
        }
    }

    /// The program waits for ever unless it is asked to stop. In the run without a stop it is asked when there is nothing
    /// else to do; a program that has not said so hangs then.
    pub fn ends_only_when_stopped(&self) {
        self.ledger().only_stopped = true;
    }

    pub(super) fn is_only_stopped(&self) -> bool {
        self.ledger().only_stopped
    }

    /// The promises that were not kept, in words. To be asked when the program has ended.
    pub fn complaints(&self) -> Vec<String> {
        let ledger = self.ledger();
        let is_broken = |count: &Count| count.went + count.excused < count.came || count.too_often;
        let broken = ledger.promises.iter().filter(|(_, count)| is_broken(count));
        broken.map(|(promise, count)| complaint(promise, count)).collect()
    }

    /// Says who has promised it.
    fn came(&self, what: Promise) -> u64 {
        let mut ledger = self.ledger();
        let who = ledger.who;
        ledger.promises.entry(what.clone()).or_default().came += 1;
        *ledger.due.entry((who, what)).or_default() += 1;
        who
    }

    fn went(&self, what: Promise, who: u64) {
        let mut ledger = self.ledger();
        let due = ledger.due.get_mut(&(who, what.clone())).filter(|due| **due > 0);
        let was_due = due.map(|due| *due -= 1).is_some();
        let count = ledger.promises.entry(what).or_default();
        count.went += 1;
        if !was_due {
            // Kept all the same, by who was excused or for him.
            count.excused = count.excused.saturating_sub(1);
        }
        count.too_often |= count.went > count.came;
    }

    fn ledger(&self) -> MutexGuard<'_, Ledger> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Default for Probe {
    fn default() -> Self {
        Self::new()
    }
}

fn complaint(promise: &Promise, count: &Count) -> String {
    let (came, went) = (Times(count.came), Times(count.went));
    match promise {
        Promise::Drop(what) => format!("`{what}` was made {came} and dropped {went}"),
        Promise::CleanUp(what) if count.too_often => {
            format!(
                "`{what}` was acquired {came} and cleaned up {went}, once when there was nothing to clean up"
            )
        }
        Promise::CleanUp(what) => format!("`{what}` was acquired {came} and cleaned up {went}"),
    }
}

struct Times(usize);

impl fmt::Display for Times {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} time{}", self.0, if self.0 == 1 { "" } else { "s" })
    }
}

impl Drop for MustDrop {
    fn drop(&mut self) {
        self.probe.went(self.what.clone(), self.who);
    }
}
