//! The tree of tasks: under which task each hangs, its name, where it was started and what it waits for.
//!
//! `build.rs` puts in order what the registry of tasks has found, and `print.rs` prints it.

mod build;
mod print;

use core::fmt;
use core::panic::Location;
use std::sync::Arc;

use convoke_task::raw::{Found, look_at_all};

/// The tasks of the process that are alive now.
///
/// It may be called from anywhere: from inside a task, from a destructor, from a thread that watches. Tasks are not held up
/// by it, and so it does not see all of them at the same moment: of tasks that come and go meanwhile some may be missing,
/// or, where one has taken the memory of another, hang in the wrong place. What stands still is shown as it is.
///
/// It is always on. A task costs nothing more for it; opening a scope, or starting a task that is awaited, a
/// few dozen instructions.
///
/// ```
/// use convoke::prelude::*;
///
/// let printed = sync_wait(task(async {
///     scope(async |s| {
///         let _reader = s.named("reader").spawn_future(async { never::<()>().await });
///         s.named("writer").spawn(async { checkpoint().await });
///         checkpoint().await;
///         convoke::tree().find("server").unwrap().to_string()
///     })
///     .await
/// }).named("server"));
/// # let printed = printed.unwrap();
/// println!("{printed}");
/// // `server` (src/main.rs:3:25) is running
/// // ├─ `reader` (src/main.rs:5:41) waits at src/main.rs:5:68
/// // └─ `writer` (src/main.rs:6:27) is queued
/// # assert!(printed.contains("├─ `reader`"), "{printed}");
/// # assert!(printed.contains("└─ `writer`"), "{printed}");
/// ```
pub fn tree() -> Tree {
    let mut found = Found::default();
    look_at_all(&mut found);
    build::build(found)
}

/// Tasks, each below the one that it hangs under, the oldest first: see [`tree()`].
///
/// It prints as a tree. With a precision (`{:.20}`), so many lines of it. Tasks that hang under more than 32 others are not
/// indented further: their line begins with how many those are (`[33]`).
#[derive(Clone, Default)]
pub struct Tree {
    /// Each before those below it.
    tasks: Vec<Known>,
}

impl convoke_task::BodyOutput for Tree {}

/// What is known of one task.
#[derive(Clone)]
struct Known {
    /// Compared, never followed.
    address: usize,
    home: u32,
    name: Option<Arc<str>>,
    location: &'static Location<'static>,
    state: TaskState,
    waited_at: Option<&'static Location<'static>>,
    stop_asked: bool,
    depth: usize,
    /// Where those below it end.
    end: usize,
}

/// What a task does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TaskState {
    /// It runs.
    Running,
    /// It is queued at its executor.
    Queued,
    /// It waits; where, if it has said so since it was queued. Futures that are not Convoke's do not say.
    Waits(Option<&'static Location<'static>>),
    /// Its future is gone, and it is about to leave.
    Leaving,
}

/// A task in a [`Tree`]. It prints as the tree of all that hangs under it.
#[derive(Clone, Copy)]
pub struct TaskNode<'a> {
    tree: &'a Tree,
    index: usize,
}

impl Tree {
    /// The tasks that hang under no other.
    pub fn roots(&self) -> impl Iterator<Item = TaskNode<'_>> {
        self.siblings(0, self.tasks.len())
    }

    /// All tasks, each before those under it.
    pub fn tasks(&self) -> impl Iterator<Item = TaskNode<'_>> {
        (0..self.tasks.len()).map(|index| TaskNode { tree: self, index })
    }

    /// The first task of this name.
    pub fn find(&self, name: &str) -> Option<TaskNode<'_>> {
        self.tasks().find(|task| task.name() == Some(name))
    }

    /// The task that is the `index`th of [`tasks`](Tree::tasks).
    #[doc(hidden)]
    pub fn node(&self, index: usize) -> TaskNode<'_> {
        TaskNode { tree: self, index }
    }

    /// The task at this address.
    #[doc(hidden)]
    pub fn at(&self, address: usize) -> Option<TaskNode<'_>> {
        self.tasks().find(|task| task.address() == address)
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.tasks.len()
    }

    /// Whether there are none.
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
    fn known(self) -> &'a Known {
        &self.tree.tasks[self.index]
    }

    /// Its name, if it was given one.
    pub fn name(self) -> Option<&'a str> {
        self.known().name.as_deref()
    }

    /// Where it was started.
    pub fn location(self) -> &'static Location<'static> {
        self.known().location
    }

    /// What it does.
    pub fn state(self) -> TaskState {
        self.known().state
    }

    /// Whether it was asked to stop.
    pub fn stop_asked(self) -> bool {
        self.known().stop_asked
    }

    /// How many tasks it hangs under.
    pub fn depth(self) -> usize {
        self.known().depth
    }

    /// The tasks that hang right under it.
    pub fn children(self) -> impl Iterator<Item = TaskNode<'a>> {
        self.tree.siblings(self.index + 1, self.known().end)
    }

    /// The task itself and all that hang under it, each before those under it.
    #[cfg(feature = "testing")]
    #[doc(hidden)]
    pub fn with_all_below(self) -> impl Iterator<Item = TaskNode<'a>> {
        (self.index..self.known().end).map(move |index| TaskNode { tree: self.tree, index })
    }

    /// Whether it lives there.
    #[cfg(feature = "testing")]
    #[doc(hidden)]
    pub fn lives_in(self, home: convoke_core::raw::OwnerId) -> bool {
        self.known().home == home.number()
    }

    /// Where it is, to be compared: another may be there later.
    #[doc(hidden)]
    pub fn address(self) -> usize {
        self.known().address
    }

    /// The number of the one thread that it stays on, or zero if there is none.
    #[doc(hidden)]
    pub fn home(self) -> u32 {
        self.known().home
    }

    /// Where it waits; or waited last, whatever it does now, if it is watched.
    #[doc(hidden)]
    pub fn waited_at(self) -> Option<&'static Location<'static>> {
        self.known().waited_at
    }

    /// Its name, to be kept.
    #[doc(hidden)]
    pub fn shared_name(self) -> Option<Arc<str>> {
        self.known().name.clone()
    }

    /// Whether it is the task with this name, and not another with one like it.
    pub fn has_name(self, name: &Arc<str>) -> bool {
        self.known().name.as_ref().is_some_and(|own| Arc::ptr_eq(own, name))
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
