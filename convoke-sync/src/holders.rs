//! Who has permits of one lock, in the order in which they were noted.

use super::ledger::{Holder, Owner};
use super::table::Table;

/// The holders of one lock.
#[derive(Debug)]
pub(crate) struct Holders {
    /// By the time of their note.
    all: Table<u64, Holder>,
    /// The same by task and by time, and by task, how many permits it has, and time.
    by_task: Table<(Option<usize>, u64), ()>,
    by_permits: Table<(Option<usize>, usize, u64), ()>,
    /// All that were noted before are doubtful.
    doubtful_before: u64,
}

impl Holders {
    pub(crate) fn new() -> Self {
        Self { all: Table::new(), by_task: Table::new(), by_permits: Table::new(), doubtful_before: 0 }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Adds one, at a time at which no other was added.
    pub(crate) fn add(&mut self, at: u64, holder: Holder) {
        let Owner { task, .. } = holder.owner;
        self.by_task.insert((task, at), ());
        self.by_permits.insert((task, holder.permits, at), ());
        self.all.insert(at, holder);
    }

    /// A task has given back so many permits: its first holder of as many is gone, or else its first. If it has none, all are
    /// doubtful.
    pub(crate) fn gave_back(&mut self, task: Option<usize>, permits: usize, now: u64) {
        let exact = self.by_permits.first_from((task, permits, 0)).map(|(key, ())| *key);
        let exact = exact.filter(|(owner, many, _)| (*owner, *many) == (task, permits)).map(|(.., at)| at);
        let first = || self.by_task.first_from((task, 0)).map(|(key, ())| *key);
        let own = exact.or_else(|| first().filter(|(owner, _)| *owner == task).map(|(_, at)| at));
        match own.and_then(|at| Some((at, self.all.remove(&at)?))) {
            Some((at, holder)) => {
                self.by_task.remove(&(task, at));
                self.by_permits.remove(&(task, holder.permits, at));
            }
            None => self.doubtful_before = now,
        }
    }

    /// All of them, the oldest first.
    pub(crate) fn copied(&self) -> impl Iterator<Item = Holder> {
        self.all.iter().map(|(at, holder)| {
            let doubtful = holder.doubtful || *at < self.doubtful_before;
            Holder { doubtful, ..holder.clone() }
        })
    }
}
