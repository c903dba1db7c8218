//! The stored rows of the server: a table of numbers, a table of jobs, a table of their effects; transactions, and locks of rows.

use std::collections::{BTreeMap, BTreeSet};

/// An error: its code, and its message.
pub(super) type Failure = (&'static str, String);

/// The tables, with the transactions that are open.
#[derive(Default)]
pub(crate) struct Tables {
    pub(crate) numbers: BTreeSet<i32>,
    pub(crate) jobs: BTreeMap<i64, Job>,
    pub(crate) effects: Vec<Effect>,
    transactions: BTreeMap<i32, Transaction>,
}

/// A row of the table of jobs.
#[derive(Clone, Debug, Default)]
pub(crate) struct Job {
    pub(crate) done_by: Option<String>,
    locked_by: Option<i32>,
}

/// A row of the table of effects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Effect {
    pub(crate) job: i64,
    pub(crate) worker: String,
}

#[derive(Default)]
struct Transaction {
    has_failed: bool,
    changes: Vec<Change>,
}

/// A change that a commit makes.
pub(super) enum Change {
    Number(i32),
    Done(i64, String),
    Effect(Effect),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TransactionState {
    Idle,
    Open,
    Failed,
}

impl Tables {
    pub(super) fn state(&self, session: i32) -> TransactionState {
        match self.transactions.get(&session) {
            None => TransactionState::Idle,
            Some(Transaction { has_failed: true, .. }) => TransactionState::Failed,
            Some(_) => TransactionState::Open,
        }
    }

    /// Returns the number of transactions that are open.
    pub(crate) fn open_transactions(&self) -> usize {
        self.transactions.len()
    }

    pub(super) fn begin(&mut self, session: i32) {
        self.transactions.entry(session).or_default();
    }

    /// Marks the transaction as failed, if one is open.
    pub(super) fn fail(&mut self, session: i32) {
        if let Some(transaction) = self.transactions.get_mut(&session) {
            transaction.has_failed = true;
        }
    }

    pub(super) fn commit(&mut self, session: i32) {
        let Some(transaction) = self.transactions.remove(&session) else { return };
        if !transaction.has_failed {
            transaction.changes.into_iter().for_each(|change| self.apply(change));
        }
        self.unlock(session);
    }

    pub(super) fn roll_back(&mut self, session: i32) {
        self.transactions.remove(&session);
        self.unlock(session);
    }

    /// Ends all transactions, as a server does that starts after a crash.
    pub(crate) fn roll_back_all(&mut self) {
        self.transactions.clear();
        self.jobs.values_mut().for_each(|job| job.locked_by = None);
    }

    fn unlock(&mut self, session: i32) {
        let locked = self.jobs.values_mut().filter(|job| job.locked_by == Some(session));
        locked.for_each(|job| job.locked_by = None);
    }

    /// Makes a change: with the transaction, or at once.
    pub(super) fn change(&mut self, session: i32, change: Change) {
        match self.transactions.get_mut(&session) {
            Some(transaction) => transaction.changes.push(change),
            None => self.apply(change),
        }
    }

    fn apply(&mut self, change: Change) {
        match change {
            Change::Number(number) => _ = self.numbers.insert(number),
            Change::Done(job, by) => self.jobs.entry(job).or_default().done_by = Some(by),
            Change::Effect(effect) => self.effects.push(effect),
        }
    }

    /// Locks the first job that is not done, and that nobody has locked.
    pub(super) fn lock_job(&mut self, session: i32) -> Option<i64> {
        let mut open =
            self.jobs.iter_mut().filter(|(_, job)| job.done_by.is_none() && job.locked_by.is_none());
        let (id, job) = open.next()?;
        job.locked_by = Some(session);
        Some(*id)
    }

    /// Counts the jobs that are not done.
    pub(crate) fn jobs_left(&self) -> i64 {
        self.jobs.values().filter(|job| job.done_by.is_none()).count().try_into().unwrap()
    }
}
