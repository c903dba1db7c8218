//! The parts of a program that is explored: which there are at a point, and how one of them is asked to stop by itself.

#![allow(unsafe_code)]

use core::fmt;

use convoke_core::Executor;

use super::super::play::Running;
use super::exploration::Asked;
use convoke_inspect::tree::{TaskNode, TaskState, Tree, tree};
use convoke_task::raw::ask_stop;
use convoke_task::raw::explored::Watching;

/// A part of a program, at one point of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// One of the tasks that are alive there, besides the program's own: in the order of the [tree](convoke_inspect::tree()), from 0.
    Task(usize),
    /// A scope, a branch of a race, what has a limit of time, or another part of a task that can be stopped by itself: in the
    /// order in which they began, from 1.
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

/// The parts there are now, and could be asked to stop.
pub(super) fn parts<T>(running: &Running<T>, watching: &Watching) -> Vec<Part> {
    let tasks = tasks(running, &tree()).len();
    let regions = watching.numbers();
    (0..tasks).map(Part::Task).chain(regions.into_iter().map(Part::Region)).collect()
}

/// Asks a part to stop. Says which it is, for people, or `None` if it is not there.
pub(super) fn ask<T>(running: &Running<T>, watching: &Watching, part: Part, from: Asked) -> Option<String> {
    let tree = tree();
    match part {
        Part::Task(number) => {
            let task = *tasks(running, &tree).get(number)?;
            let home = running.stage().owner_thread()?.id();
            // SAFETY: we are the thread that runs the loop, and do not run anything of it just now.
            let ask = || unsafe { ask_stop(task.address(), home) };
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

/// The tasks below the program's own that run on its loop.
fn tasks<'a, T>(running: &Running<T>, tree: &'a Tree) -> Vec<TaskNode<'a>> {
    let mut tasks = Vec::new();
    if let (Some(program), Some(home)) = (running.find_in(tree), running.stage().owner_thread()) {
        let depth = program.depth();
        let below = tree.tasks().skip_while(|task| task.address() != program.address()).skip(1);
        let below = below.take_while(|task| task.depth() > depth);
        tasks.extend(below.filter(|task| task.is_owned_by(home.id()) && task.state() != TaskState::Leaving));
    }
    tasks
}

/// A task in one line.
fn title(task: TaskNode<'_>) -> String {
    task.to_string().lines().next().unwrap_or_default().to_owned()
}
