//! A snapshot of the ledger of locks and the tree of tasks: which tasks wait for which locks, and which hold
//! them.

use std::collections::HashMap;

use super::participant::{Involved, is_idle};
use super::report::{Finding, Futurelock, Owned};
use crate::tree::{TaskNode, Tree, tree};
use convoke_sync::ledger::{self, Copied, Holder, Owner, Waiting};

/// A snapshot of all waits and holders. The tree is read after the ledger, so each conclusion is checked
/// against both.
pub(super) struct Snapshot {
    waits: Vec<Waiting>,
    /// For each lock: the waits that hold it or were granted it.
    holders: HashMap<usize, Vec<Holder>>,
    tree: Tree,
    /// The index of each task in the tree, by its address.
    indices: HashMap<usize, usize>,
}

impl Snapshot {
    /// Takes a snapshot. Returns `None` if the ledger shows no possible problem; the tree is read only if it
    /// does.
    pub(super) fn take() -> Option<Self> {
        let Copied { waits, holders: noted } = ledger::copy()?;
        let mut holders = HashMap::<usize, Vec<Holder>>::new();
        let granted = waits.iter().filter(|waits| waits.granted.is_some()).map(Waiting::as_holder);
        for (lock, holder) in noted.into_iter().chain(granted) {
            holders.entry(lock).or_default().push(holder);
        }
        let mut snapshot = Self { waits, holders, tree: Tree::default(), indices: HashMap::new() };
        let suspicious = snapshot.pairs().next().is_some() || !snapshot.stuck_among(|_| true).is_empty();
        suspicious.then(|| {
            snapshot.tree = tree();
            let indices = snapshot.tree.tasks().enumerate().map(|(index, task)| (task.address(), index));
            snapshot.indices = indices.collect();
            snapshot
        })
    }

    pub(super) fn tree(&self) -> &Tree {
        &self.tree
    }

    /// Returns the known holders of this lock.
    pub(super) fn holders(&self, lock: usize) -> impl Iterator<Item = &Holder> {
        self.holders.get(&lock).into_iter().flatten()
    }

    /// Returns the task of this owner.
    pub(super) fn participant(&self, owner: Owner) -> Option<Involved> {
        self.node(owner).map(Involved::of)
    }

    fn node(&self, owner: Owner) -> Option<TaskNode<'_>> {
        self.indices.get(&owner.task?).map(|index| self.tree.node(*index))
    }

    /// Returns certain futurelocks: a wait, and another wait of the same task that was granted permits of
    /// that lock and is not polled.
    pub(super) fn certain(&self) -> Vec<(&Waiting, &Waiting)> {
        let pairs = self.pairs();
        pairs.filter(|(waits, has)| self.is_waited_for(waits) && ledger::is_unchanged(has)).collect()
    }

    /// Returns possible futurelocks, as far as the ledger knows. Few waits are granted and not taken, so
    /// there are few.
    fn pairs(&self) -> impl Iterator<Item = (&Waiting, &Waiting)> {
        let granted = self.waits.iter().filter(|has| has.woken && has.owner.task.is_some());
        granted.flat_map(move |has| {
            let waits = self.waits.iter().filter(move |waits| {
                waits.lock == has.lock
                    && waits.owner.task == has.owner.task
                    && waits.granted.is_none()
                    && has.granted.is_some_and(|at| waits.polled > at)
            });
            waits.map(move |waits| (waits, has))
        })
    }

    /// Returns the stuck waits.
    pub(super) fn stuck(&self) -> Vec<&Waiting> {
        self.stuck_among(|waits| self.is_waited_for(waits))
    }

    fn stuck_among(&self, waited_for: impl Fn(&Waiting) -> bool) -> Vec<&Waiting> {
        let waits = self.waits.iter().filter(|waits| waits.granted.is_none() && waits.owner.task.is_some());
        let mut stuck: Vec<&Waiting> =
            waits.filter(|waits| self.holders(waits.lock).next().is_some()).collect();
        let mut asked = false;
        loop {
            let mut tasks = HashMap::<Option<usize>, Vec<Owner>>::new();
            for waits in &stuck {
                tasks.entry(waits.owner.task).or_default().push(waits.owner);
            }
            let is_stuck = |holder: &Holder| {
                let waiting = tasks.get(&holder.owner.task).into_iter().flatten();
                !holder.doubtful && waiting.into_iter().any(|owner| owner.is_same(holder.owner))
            };
            let before = stuck.len();
            stuck.retain(|waits| self.holders(waits.lock).all(is_stuck));
            if stuck.len() == before && !asked {
                // Checked last, when few are left, because it searches the tree.
                asked = true;
                stuck.retain(|waits| waited_for(waits));
            }
            if stuck.len() == before {
                return stuck;
            }
        }
    }

    /// Returns true if the task of this wait reported it as its current wait.
    fn is_waited_for(&self, waiting: &Waiting) -> bool {
        let node = self.node(waiting.owner);
        waiting.granted.is_none()
            && node.is_some_and(|node| is_idle(node) && node.waited_at() == Some(waiting.place))
            && ledger::is_unchanged(waiting)
    }

    /// Creates the report for a task that waits for itself.
    pub(super) fn futurelock(
        &self,
        waits: &Waiting,
        asked_at: Option<&'static core::panic::Location<'static>>,
        owned: Owned,
    ) -> Option<Finding> {
        let task = self.participant(waits.owner)?;
        Some(Finding::Futurelock(Futurelock { task, waits_at: waits.place, asked_at, owned }))
    }
}
