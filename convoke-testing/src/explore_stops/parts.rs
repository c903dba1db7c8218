//! The parts of an explored program at a point, and how one of them is requested to stop alone.

#![allow(unsafe_code)]

use core::fmt;

use convoke_core::Executor;

use super::super::play::Running;
use super::exploration::Asked;
use convoke_inspect::tree::{TaskNode, TaskState, Tree, tree};
use convoke_task::raw::ask_stop;
use convoke_task::raw::explored::Watching;

/// A part of a program, at one point of its run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// One of the live tasks other than the program's own: its index in the order of the
    /// [tree](convoke_inspect::tree()).
    Task(usize),
    /// A scope, a branch of a race, a block with a time limit, or another part of a task that can be stopped
    /// alone: numbered from 1, in the order in which they began.
    Region(usize),
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Task(number) => write!(f, "task {number}"),
            Self::Region(number) => write!(f, "region {number}"),
        }
    }
}

/// Returns the parts that exist now and could be requested to stop.
pub(super) fn parts<T>(running: &Running<T>, watching: &Watching) -> Vec<Part> {
    let tasks = tasks(running, &tree()).len();
    let regions = watching.numbers();
    (0..tasks).map(Part::Task).chain(regions.into_iter().map(Part::Region)).collect()
}

/// Requests a part to stop. Returns its description, or `None` if it does not exist.
pub(super) fn ask<T>(running: &Running<T>, watching: &Watching, part: Part, from: Asked) -> Option<String> {
    let tree = tree();
    match part {
        Part::Task(number) => {
            let task = *tasks(running, &tree).get(number)?;
            let owner = running.stage().owner_thread()?.id();
            // SAFETY: this thread runs the loop that owns the task (`owner` is its id), and runs none of its
            // work now.
            let ask = || unsafe { ask_stop(task.address(), owner) };
            ask_from(running, from, ask).then(|| title(task))
        }
        Part::Region(number) => {
            let owner = watching.task_of(number);
            let owner = tree.tasks().find(|task| Some(task.address()) == owner);
            let title = owner.map_or("part of no task".to_owned(), |task| format!("part of {}", title(task)));
            ask_from(running, from, || watching.ask(number)).then_some(title)
        }
    }
}

fn ask_from<T>(running: &Running<T>, from: Asked, ask: impl FnOnce() -> bool) -> bool {
    match from {
        Asked::Outside => ask(),
        Asked::Inside => running.within(ask),
    }
}

/// Returns the tasks below the program's own that the loop owns.
fn tasks<'a, T>(running: &Running<T>, tree: &'a Tree) -> Vec<TaskNode<'a>> {
    let mut tasks = Vec::new();
    if let (Some(program), Some(owner)) = (running.find_in(tree), running.stage().owner_thread()) {
        let depth = program.depth();
        let below = tree.tasks().skip_while(|task| task.address() != program.address()).skip(1);
        let below = below.take_while(|task| task.depth() > depth);
        tasks.extend(below.filter(|task| task.is_owned_by(owner.id()) && task.state() != TaskState::Leaving));
    }
    tasks
}

/// Describes a task in one line.
fn title(task: TaskNode<'_>) -> String {
    task.to_string().lines().next().unwrap_or_default().to_owned()
}
