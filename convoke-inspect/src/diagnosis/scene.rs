//! What the ledger has and the tree shows, at one moment: who waits for what, and who has it.

use std::collections::HashMap;

use super::involved::{Involved, is_idle};
use super::report::{Futurelock, Owned, Report};
use crate::tree::{TaskNode, Tree, tree};
use convoke_sync::ledger::{self, Copied, Holder, Owner, Waiting};

/// See the head of this file.
pub(super) struct Scene {
    waits: Vec<Waiting>,
    /// By lock: those who hold it, and those who were granted it.
    holders: HashMap<usize, Vec<Holder>>,
    tree: Tree,
    /// Where each task is in the tree, by its address.
    places: HashMap<usize, usize>,
}

impl Scene {
    /// None if there is nothing to be seen: the tree is looked at only if there is.
    pub(super) fn look() -> Option<Self> {
        let Copied { waits, holders: noted } = ledger::copy()?;
        let mut holders = HashMap::<usize, Vec<Holder>>::new();
        let granted = waits.iter().filter(|waits| waits.granted.is_some()).map(Waiting::as_holder);
        for (lock, holder) in noted.into_iter().chain(granted) {
            holders.entry(lock).or_default().push(holder);
        }
        let mut scene = Self { waits, holders, tree: Tree::default(), places: HashMap::new() };
        let suspicious = scene.pairs().next().is_some() || !scene.stuck_among(|_| true).is_empty();
        suspicious.then(|| {
            scene.tree = tree();
            let places = scene.tree.tasks().enumerate().map(|(place, task)| (task.address(), place));
            scene.places = places.collect();
            scene
        })
    }

    pub(super) fn tree(&self) -> &Tree {
        &self.tree
    }

    /// Those of whom it is known that they have permits of this lock.
    pub(super) fn holders(&self, lock: usize) -> impl Iterator<Item = &Holder> {
        self.holders.get(&lock).into_iter().flatten()
    }

    /// The task of this owner.
    pub(super) fn involved(&self, owner: Owner) -> Option<Involved> {
        self.node(owner).map(Involved::of)
    }

    fn node(&self, owner: Owner) -> Option<TaskNode<'_>> {
        self.places.get(&owner.task?).map(|place| self.tree.node(*place))
    }

    /// Who waits, and who of the same task was granted permits of that lock, and is not polled.
    pub(super) fn certain(&self) -> Vec<(&Waiting, &Waiting)> {
        let pairs = self.pairs();
        pairs.filter(|(waits, has)| self.is_waited_for(waits) && ledger::is_unchanged(has)).collect()
    }

    /// The same as far as the ledger knows. Few are granted and have not taken it, so this is short.
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

    /// The waits that are stuck.
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
                // Last, and of few: it looks at the tree.
                asked = true;
                stuck.retain(|waits| waited_for(waits));
            }
            if stuck.len() == before {
                return stuck;
            }
        }
    }

    /// Whether this is what its task waits for.
    fn is_waited_for(&self, waiting: &Waiting) -> bool {
        let node = self.node(waiting.owner);
        waiting.granted.is_none()
            && node.is_some_and(|node| is_idle(node) && node.waited_at() == Some(waiting.place))
            && ledger::is_unchanged(waiting)
    }

    /// What is said of a task that waits for itself.
    pub(super) fn futurelock(
        &self,
        waits: &Waiting,
        asked_at: Option<&'static core::panic::Location<'static>>,
        owned: Owned,
    ) -> Option<Report> {
        let task = self.involved(waits.owner)?;
        Some(Report::Futurelock(Futurelock { task, waits_at: waits.place, asked_at, owned }))
    }
}
