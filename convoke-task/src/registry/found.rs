//! What is copied out of tasks under the locks of the registry and of their parents. Room for it is made beforehand: under a
//! lock nobody asks for memory.

#![allow(unsafe_code)]

use core::ptr::NonNull;
use std::sync::Arc;

use crate::task::{TaskHeader, TaskView};

/// What was found so far.
#[derive(Debug, Default)]
pub struct Found {
    /// The tasks.
    pub tasks: Vec<Seen>,
    /// The names of tasks, each with the address of its task.
    pub names: Vec<(usize, Arc<str>)>,
    /// Of the parent that is being looked at: how old it is, in its shard.
    parent: (u64, usize),
    /// What there was no room for.
    refused: usize,
    /// One that is looked for.
    #[cfg(feature = "testing")]
    pub(super) wanted: Option<super::ask::Wanted>,
}

/// A task that was found. Tasks are known by their addresses, which are compared and never followed.
#[derive(Clone, Debug)]
pub struct Seen {
    /// Its address.
    pub address: usize,
    /// The task above.
    pub above: Option<usize>,
    /// Its state.
    pub look: TaskView,
    /// By which its parent, a scope or an operation, is put in order among others.
    pub order: (u64, usize),
}

/// How much had been found.
#[derive(Clone, Copy, Debug)]
pub(super) struct Mark {
    tasks: usize,
    names: usize,
}

impl Found {
    pub(super) fn mark(&self) -> Mark {
        Mark { tasks: self.tasks.len(), names: self.names.len() }
    }

    pub(super) fn comes_from(&mut self, order: u64, shard: usize) {
        self.parent = (order, shard);
    }

    /// There is this task.
    ///
    /// # Safety
    /// As for [`TaskHeader::look`].
    pub(crate) unsafe fn task(&mut self, task: &TaskHeader, above: Option<NonNull<TaskHeader>>) {
        #[cfg(feature = "testing")]
        if let Some(wanted) = &mut self.wanted {
            wanted.meet(task);
        }
        if self.tasks.len() == self.tasks.capacity() {
            self.refused += 1;
            return;
        }
        self.tasks.push(Seen {
            address: core::ptr::from_ref(task).addr(),
            above: above.map(|above| above.addr().get()),
            // SAFETY: the caller's.
            look: unsafe { task.look() },
            order: self.parent,
        });
    }

    /// The task at this address has this name.
    pub(crate) fn name(&mut self, task: NonNull<TaskHeader>, name: &Arc<str>) {
        if self.names.len() == self.names.capacity() {
            self.refused += 1;
            return;
        }
        self.names.push((task.addr().get(), name.clone()));
    }

    /// Calls `add`, which tells of tasks, the newest first; they are kept with the oldest first.
    pub(crate) fn reversed(&mut self, add: impl FnOnce(&mut Self)) {
        let before = self.tasks.len();
        add(self);
        self.tasks[before..].reverse();
    }

    /// Whether something was refused since. Then there is more room now, and one has to look again.
    pub(super) fn wants_more_room(&mut self, since: Mark) -> bool {
        let refused = core::mem::take(&mut self.refused);
        if refused == 0 {
            return false;
        }
        self.tasks.truncate(since.tasks);
        self.names.truncate(since.names);
        // Both, for it is not known which: and more, for there may be more by then.
        self.tasks.reserve(self.tasks.capacity() + 2 * refused);
        self.names.reserve(self.names.capacity() + 2 * refused);
        true
    }
}
