//! Builds a tree from the tasks that the registry has found. They are not read at the same moment: a task
//! whose parent was not found becomes a root, and a cycle of parents is cut.

use std::collections::BinaryHeap;
use std::sync::Arc;

use super::{TaskRecord, TaskState, Tree};
use convoke_task::raw::{Found, Seen};

/// Builds the tree, oldest tasks first, as far as their order is known (within one scope, and among those
/// that one thread has opened).
pub(super) fn build(found: Found) -> Tree {
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
    let view = &seen.look;
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
        owner_thread: view.home,
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

#[cfg(test)]
mod tests {
    use core::panic::Location;

    use super::*;
    use convoke_task::raw::TaskView;

    fn seen(address: usize, above: Option<usize>, order: u64) -> Seen {
        let look = TaskView {
            location: Location::caller(),
            running: false,
            queued: true,
            done: false,
            stop_asked: address == 3,
            waits: None,
            home: 0,
        };
        Seen { address, above, look, order: (order, 0) }
    }

    fn tree_of(tasks: Vec<Seen>) -> Tree {
        let mut found = Found::default();
        found.names = tasks.iter().map(|task| (task.address, task.address.to_string().into())).collect();
        found.tasks = tasks;
        build(found)
    }

    fn outline(tree: &Tree) -> Vec<(usize, &str)> {
        tree.tasks().map(|task| (task.depth(), task.name().unwrap())).collect()
    }

    #[test]
    fn children_follow_their_parent_the_oldest_first() {
        let tree = tree_of(vec![
            seen(7, Some(1), 9),
            seen(3, Some(2), 5),
            seen(4, Some(2), 5),
            seen(2, Some(1), 1),
            seen(1, None, 0),
            seen(8, None, 2),
        ]);
        assert_eq!(outline(&tree), [(0, "1"), (1, "2"), (2, "3"), (2, "4"), (1, "7"), (0, "8")]);
        let names = |nodes: Vec<super::super::TaskNode<'_>>| -> Vec<String> {
            nodes.iter().map(|node| node.name().unwrap().to_owned()).collect()
        };
        assert_eq!(names(tree.roots().collect()), ["1", "8"]);
        assert_eq!(names(tree.find("1").unwrap().children().collect()), ["2", "7"]);
        assert_eq!(names(tree.find("2").unwrap().children().collect()), ["3", "4"]);
        assert_eq!(tree.find("3").unwrap().children().count(), 0);
    }

    #[test]
    fn orphans_are_at_the_top_and_a_circle_is_cut() {
        let tree =
            tree_of(vec![seen(1, Some(2), 0), seen(2, Some(1), 1), seen(3, Some(9), 2), seen(4, Some(4), 3)]);
        assert_eq!(outline(&tree), [(0, "3"), (0, "1"), (1, "2"), (0, "4")]);
    }

    #[test]
    fn a_chain_of_thousands_is_printed_in_as_many_short_lines() {
        const TASKS: usize = if cfg!(miri) { 40 } else { 2000 };
        let chain: Vec<_> = (1..=TASKS).map(|n| seen(n, (n > 1).then_some(n - 1), n as u64)).collect();
        let line = Tree::to_string(&tree_of(chain[..1].to_vec())).len();
        let printed = tree_of(chain).to_string();
        assert_eq!(printed.lines().count(), TASKS);
        assert!(printed.len() <= TASKS * (line + 200), "{} bytes for {TASKS} tasks", printed.len());
        let mut lines = printed.lines().skip(32);
        assert!(lines.next().is_some_and(|line| line.starts_with("      ") && line.contains("└─ `33` (")));
        assert!(lines.next().is_some_and(|line| line.starts_with("[33] └─ `34` (")));
    }

    #[test]
    fn it_prints_as_a_tree() {
        let tree = tree_of(vec![
            seen(1, None, 0),
            seen(2, Some(1), 1),
            seen(3, Some(2), 2),
            seen(4, Some(1), 3),
            seen(5, Some(4), 4),
        ]);
        let location = seen(1, None, 0).look.location;
        let location = format!("({}:", location.file());
        let lines: Vec<String> = tree
            .to_string()
            .lines()
            .map(|line| {
                let (before, after) = line.split_once(&location).unwrap();
                format!("{before}{}", after.split_once(") ").unwrap().1)
            })
            .collect();
        assert_eq!(
            lines,
            [
                "`1` is queued",
                "├─ `2` is queued",
                "│  └─ `3` is queued, and was asked to stop",
                "└─ `4` is queued",
                "   └─ `5` is queued",
            ]
        );
        assert_eq!(tree.find("4").unwrap().to_string().lines().count(), 2);
        assert_eq!(format!("{tree:.2}").lines().last(), Some("… and 3 more"));
        assert_eq!(Tree::default().to_string(), "no tasks");
    }
}
