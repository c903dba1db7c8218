//! The promises of an explored program, and whether they were kept.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A recorder of the promises of an explored program: values that must be dropped, and clean-up that must
/// run. Clones share the probe.
#[derive(Clone, Debug)]
pub struct Probe(Arc<Mutex<Ledger>>);

#[derive(Debug, Default)]
struct Ledger {
    promises: BTreeMap<Promise, Count>,
    only_stopped: bool,
    /// The id of the program that makes promises now, if there are several.
    who: u64,
    /// The promises of each program that are not kept yet.
    due: BTreeMap<(u64, Promise), usize>,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Promise {
    Drop(String),
    CleanUp(String),
}

impl Promise {
    /// Sorts before all other promises.
    const FIRST: Self = Self::Drop(String::new());
}

#[derive(Debug, Default)]
struct Count {
    promised: usize,
    fulfilled: usize,
    /// The number of promises that need not be kept, but may be.
    excused: usize,
    /// True if it was cleaned up more often than it was acquired.
    too_often: bool,
}

/// A value that must be dropped before the program ends: see [`Probe::must_drop`].
#[derive(Debug)]
#[must_use = "it is kept where it should be dropped"]
pub struct MustDrop {
    probe: Probe,
    what: Promise,
    who: u64,
}

impl Probe {
    /// Creates a probe without promises, for code that runs programs itself.
    pub fn new() -> Self {
        Self(Arc::default())
    }

    /// Returns a value to store where a resource would be. It must be dropped before the program ends.
    pub fn must_drop(&self, what: impl Into<String>) -> MustDrop {
        let what = Promise::Drop(what.into());
        let who = self.promised(what.clone());
        MustDrop { probe: self.clone(), what, who }
    }

    /// Records that a resource was acquired. Its clean-up is due from now on.
    pub fn acquired(&self, what: impl Into<String>) {
        self.promised(Promise::CleanUp(what.into()));
    }

    /// Records that a resource was cleaned up. This must happen once for each time that it was acquired.
    pub fn cleaned_up(&self, what: impl Into<String>) {
        let who = self.ledger().who;
        self.fulfilled(Promise::CleanUp(what.into()), who);
    }

    /// Calls `f`; its promises belong to program `who`. For code that runs several programs, of which one may
    /// be [excused](Probe::excuse).
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

    /// Excuses program `who` from its promises that are not kept yet, because it has crashed.
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

    /// Declares that the program does not end by itself. In the run without a stop it is requested to stop
    /// when there is nothing else to do. Without this declaration such a program hangs.
    pub fn ends_only_when_stopped(&self) {
        self.ledger().only_stopped = true;
    }

    pub(super) fn is_only_stopped(&self) -> bool {
        self.ledger().only_stopped
    }

    /// Describes the broken promises. Call it when the program has ended.
    pub fn complaints(&self) -> Vec<String> {
        let ledger = self.ledger();
        let is_broken = |count: &Count| count.fulfilled + count.excused < count.promised || count.too_often;
        let broken = ledger.promises.iter().filter(|(_, count)| is_broken(count));
        broken.map(|(promise, count)| complaint(promise, count)).collect()
    }

    /// Records a promise. Returns the id of its program.
    fn promised(&self, what: Promise) -> u64 {
        let mut ledger = self.ledger();
        let who = ledger.who;
        ledger.promises.entry(what.clone()).or_default().promised += 1;
        *ledger.due.entry((who, what)).or_default() += 1;
        who
    }

    fn fulfilled(&self, what: Promise, who: u64) {
        let mut ledger = self.ledger();
        let due = ledger.due.get_mut(&(who, what.clone())).filter(|due| **due > 0);
        let was_due = due.map(|due| *due -= 1).is_some();
        let count = ledger.promises.entry(what).or_default();
        count.fulfilled += 1;
        if !was_due {
            // The promise of an excused program was kept after all, by it or on its behalf.
            count.excused = count.excused.saturating_sub(1);
        }
        count.too_often |= count.fulfilled > count.promised;
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
    let (promised, fulfilled) = (Times(count.promised), Times(count.fulfilled));
    match promise {
        Promise::Drop(what) => format!("`{what}` was made {promised} and dropped {fulfilled}"),
        Promise::CleanUp(what) if count.too_often => {
            format!(
                "`{what}` was acquired {promised} and cleaned up {fulfilled}, once when there was nothing to clean up"
            )
        }
        Promise::CleanUp(what) => format!("`{what}` was acquired {promised} and cleaned up {fulfilled}"),
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
        self.probe.fulfilled(self.what.clone(), self.who);
    }
}
