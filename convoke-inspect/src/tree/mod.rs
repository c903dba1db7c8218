//! The tree of tasks: the parent, name, spawn location and current wait of each.
//!
//! [`tree()`] asks the registry of `convoke-task` for all live tasks. `build.rs` orders them into a tree, and
//! `print.rs` prints it.

mod build;
mod print;

use core::fmt;
use core::panic::Location;
use std::sync::Arc;

#[doc(hidden)]
pub use build::build;
use convoke_task::raw::{Found, visit_all};

/// Returns the tasks of the process that are alive now.
///
/// It may be called from anywhere: inside a task, in a destructor, on another thread. It does not block
/// tasks, so it does not see all of them at the same moment: tasks that start or end meanwhile may be
/// missing, or, where one has reused the memory of another, appear under the wrong parent. Tasks that do not
/// change are shown exactly.
///
/// It is always available. It adds no cost per task, and a few dozen instructions to opening a scope or
/// starting a task that is awaited.
///
/// ```
/// use convoke::prelude::*;
/// use convoke::scope::Handle;
/// use convoke::task::forever;
///
/// let printed = block_on(async {
///     scope(async |s| {
///         let _reader: Handle<()> = s.named("reader").spawn_future(async { forever().await });
///         s.named("writer").spawn(async { checkpoint().await });
///         checkpoint().await;
///         convoke::inspect::tree().to_string()
///     })
///     .await
/// });
/// let printed = printed.unwrap();
/// println!("{printed}");
/// // task (src/main.rs:5:15) is running
/// // ├─ `reader` (src/main.rs:7:53) waits at src/main.rs:7:74
/// // └─ `writer` (src/main.rs:8:27) is queued
/// # assert!(printed.contains("├─ `reader`"), "{printed}");
/// # assert!(printed.contains("└─ `writer`"), "{printed}");
/// ```
pub fn tree() -> Tree {
    let mut found = Found::default();
    visit_all(&mut found);
    build(found)
}

/// A tree of tasks, children below their parents, oldest first: see [`tree()`].
///
/// It prints as a tree. A precision (`{:.20}`) limits the number of lines. Tasks at a depth of more than 32
/// are not indented further: their line starts with the depth (`[33]`).
#[derive(Clone, Default)]
pub struct Tree {
    /// Each task before its descendants.
    tasks: Vec<TaskRecord>,
}

impl convoke_task::BodyOutput for Tree {}

/// A snapshot of one task.
#[derive(Clone)]
struct TaskRecord {
    /// For comparison only, never dereferenced.
    address: usize,
    owner_thread: u32,
    name: Option<Arc<str>>,
    location: &'static Location<'static>,
    state: TaskState,
    waited_at: Option<&'static Location<'static>>,
    stop_asked: bool,
    depth: usize,
    /// The index after its last descendant.
    end: usize,
}

/// The current state of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TaskState {
    /// It is being polled.
    Running,
    /// It is queued at its executor.
    Queued,
    /// It waits, at this location if known. Only Convoke's own futures report it.
    Waits(Option<&'static Location<'static>>),
    /// Its future has been dropped, and the task is about to end.
    Leaving,
}

/// A task in a [`Tree`]. It prints as the tree of itself and its descendants.
#[derive(Clone, Copy)]
pub struct TaskNode<'a> {
    tree: &'a Tree,
    index: usize,
}

impl Tree {
    /// Returns the tasks without a parent.
    pub fn roots(&self) -> impl Iterator<Item = TaskNode<'_>> {
        self.siblings(0, self.tasks.len())
    }

    /// Returns all tasks, each before its descendants.
    pub fn tasks(&self) -> impl Iterator<Item = TaskNode<'_>> {
        (0..self.tasks.len()).map(|index| TaskNode { tree: self, index })
    }

    /// Returns the first task with this name.
    pub fn find(&self, name: &str) -> Option<TaskNode<'_>> {
        self.tasks().find(|task| task.name() == Some(name))
    }

    /// Returns the `index`th task of [`tasks`](Tree::tasks).
    #[doc(hidden)]
    pub fn node(&self, index: usize) -> TaskNode<'_> {
        TaskNode { tree: self, index }
    }

    /// Returns the task at this address.
    #[doc(hidden)]
    pub fn at(&self, address: usize) -> Option<TaskNode<'_>> {
        self.tasks().find(|task| task.address() == address)
    }

    /// Returns the number of tasks.
    pub fn len(&self) -> usize {
        self.tasks.len()
    }

    /// Returns true if there are no tasks.
    pub fn is_empty(&self) -> bool {
        self.tasks.is_empty()
    }

    fn siblings(&self, from: usize, to: usize) -> impl Iterator<Item = TaskNode<'_>> {
        let from = (from < to).then_some(from);
        core::iter::successors(from, move |index| Some(self.tasks[*index].end).filter(|next| *next < to))
            .map(|index| TaskNode { tree: self, index })
    }
}

impl<'a> TaskNode<'a> {
    fn record(self) -> &'a TaskRecord {
        &self.tree.tasks[self.index]
    }

    /// Returns its name, if it has one.
    pub fn name(self) -> Option<&'a str> {
        self.record().name.as_deref()
    }

    /// Returns the location where it was started.
    pub fn location(self) -> &'static Location<'static> {
        self.record().location
    }

    /// Returns its current state.
    pub fn state(self) -> TaskState {
        self.record().state
    }

    /// Returns true if it was requested to stop.
    pub fn stop_asked(self) -> bool {
        self.record().stop_asked
    }

    /// Returns the number of its ancestors.
    pub fn depth(self) -> usize {
        self.record().depth
    }

    /// Returns its children.
    pub fn children(self) -> impl Iterator<Item = TaskNode<'a>> {
        self.tree.siblings(self.index + 1, self.record().end)
    }

    /// Returns the task and its descendants, each before its own descendants.
    #[cfg(feature = "testing")]
    #[doc(hidden)]
    pub fn with_all_below(self) -> impl Iterator<Item = TaskNode<'a>> {
        (self.index..self.record().end).map(move |index| TaskNode { tree: self.tree, index })
    }

    /// Returns true if this thread owns the task.
    #[cfg(feature = "testing")]
    #[doc(hidden)]
    pub fn is_owned_by(self, owner: convoke_core::raw::OwnerId) -> bool {
        self.record().owner_thread == owner.number()
    }

    /// Returns its address, for comparison. Another task may have the same address later.
    #[doc(hidden)]
    pub fn address(self) -> usize {
        self.record().address
    }

    /// Returns the number of the thread that owns it, or zero if it may run on any thread of its executor.
    #[doc(hidden)]
    pub fn owner_thread(self) -> u32 {
        self.record().owner_thread
    }

    /// Returns the location where it waits or last waited, if that was recorded while it was watched.
    #[doc(hidden)]
    pub fn waited_at(self) -> Option<&'static Location<'static>> {
        self.record().waited_at
    }

    /// Returns its name as a shared string.
    #[doc(hidden)]
    pub fn shared_name(self) -> Option<Arc<str>> {
        self.record().name.clone()
    }

    /// Returns true if its name is this very string, not just an equal one.
    pub fn has_name(self, name: &Arc<str>) -> bool {
        self.record().name.as_ref().is_some_and(|own| Arc::ptr_eq(own, name))
    }
}

impl fmt::Debug for Tree {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.tasks()).finish()
    }
}

impl fmt::Debug for TaskNode<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TaskNode")
            .field("depth", &self.depth())
            .field("name", &self.name())
            .field("location", &format_args!("{}", self.location()))
            .field("state", &self.state())
            .field("stop_asked", &self.stop_asked())
            .finish()
    }
}
