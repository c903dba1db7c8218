//! The holders of the permits of one lock, in the order in which they were recorded.

use super::table::Table;
use super::{Holder, Owner};

/// The holders of one lock.
#[derive(Debug)]
pub(crate) struct Holders {
    /// By the time at which they were recorded.
    all: Table<u64, Holder>,
    /// Indices into `all`: by (task, time), and by (task, number of permits, time).
    by_task: Table<(Option<usize>, u64), ()>,
    by_permits: Table<(Option<usize>, usize, u64), ()>,
    /// Holders that were recorded before this time are doubtful.
    doubtful_before: u64,
}

impl Holders {
    pub(crate) fn new() -> Self {
        Self { all: Table::new(), by_task: Table::new(), by_permits: Table::new(), doubtful_before: 0 }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Adds a holder. Each call must use a different time.
    pub(crate) fn add(&mut self, at: u64, holder: Holder) {
        let Owner { task, .. } = holder.owner;
        self.by_task.insert((task, at), ());
        self.by_permits.insert((task, holder.permits, at), ());
        self.all.insert(at, holder);
    }

    /// Removes a holder that belongs to `task`, which has released `permits` permits: its oldest holder with
    /// exactly that number, or else its oldest holder. If the ledger knows none, all present holders become
    /// doubtful.
    pub(crate) fn gave_back(&mut self, task: Option<usize>, permits: usize, now: u64) {
        let exact = self.by_permits.first_from((task, permits, 0)).map(|(key, ())| *key);
        let exact = exact.filter(|(owner, count, _)| (*owner, *count) == (task, permits)).map(|(.., at)| at);
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

    /// Iterates over copies of all holders, oldest first.
    pub(crate) fn copied(&self) -> impl Iterator<Item = Holder> {
        self.all.iter().map(|(at, holder)| {
            let doubtful = holder.doubtful || *at < self.doubtful_before;
            Holder { doubtful, ..holder.clone() }
        })
    }
}
