//! Trees of tasks that a test has made up: their order, their outline, cycles.

use core::panic::Location;

use convoke_inspect::raw::build;
use convoke_inspect::tree::{TaskNode, Tree};
use convoke_task::raw::{Found, Seen, TaskView};

fn seen(address: usize, above: Option<usize>, order: u64) -> Seen {
    let view = TaskView {
        location: Location::caller(),
        running: false,
        queued: true,
        done: false,
        stop_asked: address == 3,
        waits: None,
        owner_thread: 0,
    };
    Seen { address, above, view, order: (order, 0) }
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
    let names = |nodes: Vec<TaskNode<'_>>| -> Vec<String> {
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
    let location = seen(1, None, 0).view.location;
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
