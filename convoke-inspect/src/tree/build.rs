//! Builds a tree from the tasks that the registry has found. They are not read at the same moment: a task
//! whose parent was not found becomes a root, and a cycle of parents is cut.

use std::collections::BinaryHeap;
use std::sync::Arc;

use super::{TaskRecord, TaskState, Tree};
use convoke_task::raw::{Found, Seen};

/// Builds the tree, oldest tasks first, as far as their order is known (within one scope, and among those
/// that one thread has opened).
pub fn build(found: Found) -> Tree {
    let (tasks, names) = (found.tasks, found.names);
    let in_order =
        sorted(tasks.iter().zip(0..).map(|(task, index)| (task.order.0, task.order.1, index)).collect());
    let seen: Vec<&Seen> = in_order.iter().map(|&(_, _, index)| &tasks[index]).collect();
    let at = Places::of(seen.iter().map(|task| task.address));
    let named = Places::of(names.iter().map(|(address, _)| *address));
    // The youngest child of each task, and the next older sibling of each: as lists they would be more code.
    let (mut youngest, mut older) = (vec![NO_TASK; seen.len()], vec![NO_TASK; seen.len()]);
    let mut is_root = vec![false; seen.len()];
    for (index, task) in seen.iter().enumerate() {
        match task.above.and_then(|above| at.find(above)) {
            Some(above) => older[index] = core::mem::replace(&mut youngest[above], index),
            None => is_root[index] = true,
        }
    }
    let mut placed = vec![false; seen.len()];
    let mut tree = Tree { tasks: Vec::with_capacity(seen.len()) };
    // Tasks to place and their depths, as a stack. Recursion could overflow: tasks may nest deeply.
    let mut next = Vec::new();
    // The roots, then all tasks that are under none of them because parents changed during the visit.
    for only_roots in [true, false] {
        for (root, is_root) in is_root.iter().enumerate() {
            if only_roots && !is_root {
                continue;
            }
            next.push((root, 0));
            while let Some((index, depth)) = next.pop() {
                if core::mem::replace(&mut placed[index], true) {
                    continue;
                }
                let name = named.find(seen[index].address).map(|index| names[index].1.clone());
                tree.tasks.push(record(seen[index], name, depth));
                let mut child = youngest[index];
                while child != NO_TASK {
                    next.push((child, depth + 1));
                    child = older[child];
                }
            }
        }
    }
    close(&mut tree.tasks);
    tree
}

/// No index of a task.
const NO_TASK: usize = usize::MAX;

/// A sort key, and the index of what it belongs to.
type Key = (u64, usize, usize);

/// Returns the keys in order, each with its index behind it: equal ones stay in theirs. A heap, and no sort of the
/// standard library, which is several times as much code in every program.
#[inline(never)]
fn sorted(keys: Vec<Key>) -> Vec<Key> {
    BinaryHeap::from(keys).into_sorted_vec()
}

/// The indices of addresses.
struct Places(Vec<Key>);

impl Places {
    fn of(addresses: impl Iterator<Item = usize>) -> Self {
        Self(sorted(addresses.zip(0..).map(|(address, index)| (0, address, index)).collect()))
    }

    /// Returns the index of the last one that is this address.
    fn find(&self, address: usize) -> Option<usize> {
        let end = self.0.partition_point(|&(_, other, _)| other <= address);
        self.0[..end].last().filter(|&&(_, found, _)| found == address).map(|&(_, _, index)| index)
    }
}

fn record(seen: &Seen, name: Option<Arc<str>>, depth: usize) -> TaskRecord {
    let view = &seen.view;
    let state = if view.done {
        TaskState::Leaving
    } else if view.running {
        TaskState::Running
    } else if view.queued {
        TaskState::Queued
    } else {
        TaskState::Waits(view.waits)
    };
    TaskRecord {
        address: seen.address,
        owner_thread: view.owner_thread,
        name,
        location: view.location,
        state,
        waited_at: view.waits,
        stop_asked: view.stop_asked,
        depth,
        end: 0,
    }
}

/// Sets the `end` of each task: the index of the next task that is no deeper.
fn close(tasks: &mut [TaskRecord]) {
    let mut open: Vec<usize> = Vec::new();
    for index in 0..tasks.len() {
        while let Some(last) = open.pop_if(|last| tasks[*last].depth >= tasks[index].depth) {
            tasks[last].end = index;
        }
        open.push(index);
    }
    for last in open {
        tasks[last].end = tasks.len();
    }
}
