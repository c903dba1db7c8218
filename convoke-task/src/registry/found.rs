//! The buffer into which tasks are copied under the locks of the registry and of their parents. Its capacity
//! is reserved beforehand: under a lock no memory is allocated.

use std::sync::Arc;

use crate::task::{InList, TaskId, TaskView};

/// A parent of tasks that inspectors can visit.
pub(crate) trait Visit {
    /// Adds its tasks and their names to `found`. Called under the lock of a shard of the registry.
    fn visit(&self, found: &mut Found);
}

/// The tasks and names that were found so far.
#[derive(Debug, Default)]
pub struct Found {
    /// The tasks.
    pub tasks: Vec<Seen>,
    /// The names of tasks, each with the address of its task.
    pub names: Vec<(usize, Arc<str>)>,
    /// The age of the parent that is being visited, and its shard.
    parent: (u64, usize),
    /// The number of tasks and names that there was no capacity for.
    refused: usize,
    /// A task to find.
    #[cfg(feature = "testing")]
    pub(super) wanted: Option<super::ask::Wanted>,
}

/// A task that was found. Tasks are identified by their addresses, which are compared and never dereferenced.
#[derive(Clone, Debug)]
pub struct Seen {
    /// The address of the task.
    pub address: usize,
    /// The address of the task above.
    pub above: Option<usize>,
    /// The state of the task.
    pub view: TaskView,
    /// The sort key of its parent (a scope or an operation) among others.
    pub order: (u64, usize),
}

/// A length of the buffer to go back to.
#[derive(Clone, Copy, Debug)]
pub(super) struct Mark {
    tasks: usize,
    names: usize,
}

impl Found {
    /// Returns the current length.
    pub(super) fn mark(&self) -> Mark {
        Mark { tasks: self.tasks.len(), names: self.names.len() }
    }

    /// Sets the parent whose tasks are added next.
    pub(super) fn comes_from(&mut self, order: u64, shard: usize) {
        self.parent = (order, shard);
    }

    /// Adds a task, if there is capacity.
    pub(crate) fn task(&mut self, task: InList<'_>, above: Option<TaskId>) {
        #[cfg(feature = "testing")]
        if let Some(wanted) = &mut self.wanted {
            wanted.visit(task);
        }
        if self.tasks.len() == self.tasks.capacity() {
            self.refused += 1;
            return;
        }
        self.tasks.push(Seen {
            address: task.id().address(),
            above: above.map(TaskId::address),
            view: task.view(),
            order: self.parent,
        });
    }

    /// Adds the name of a task, if there is capacity.
    pub(crate) fn name(&mut self, task: TaskId, name: &Arc<str>) {
        if self.names.len() == self.names.capacity() {
            self.refused += 1;
            return;
        }
        self.names.push((task.address(), name.clone()));
    }

    /// Calls `add`, which adds tasks newest first, and reverses them.
    pub(crate) fn reversed(&mut self, add: impl FnOnce(&mut Self)) {
        let before = self.tasks.len();
        add(self);
        self.tasks[before..].reverse();
    }

    /// If something was refused since `since`, drops what was added since, reserves more capacity, and
    /// returns true: the shard is then visited again.
    pub(super) fn grow_if_refused(&mut self, since: Mark) -> bool {
        let refused = core::mem::take(&mut self.refused);
        if refused == 0 {
            return false;
        }
        self.tasks.truncate(since.tasks);
        self.names.truncate(since.names);
        // Both vectors, since it is not known which was full; and more than was refused, since there may be
        // more by then.
        self.tasks.reserve(self.tasks.capacity() + 2 * refused);
        self.names.reserve(self.names.capacity() + 2 * refused);
        true
    }
}
