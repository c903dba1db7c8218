//! The parent of one task that is in no list: passes the stop request of its environment on to the task, and
//! shows the task to inspectors.

#![allow(unsafe_code)]

use core::cell::Cell;
use core::future::Future;
use core::panic::Location;
use core::ptr::NonNull;
use std::sync::Arc;

use convoke_core::Env;
use convoke_core::raw::sync::UnsafeCell;
use convoke_core::raw::{DropOutOfLine, LastUse, RawCallback};

use crate::registry::{Entry, Found, Visit};
use crate::task::{AskStop, Ending, InList, NewTask, ParentLink, Spawnable};

/// The parent of one task. The rules:
///
/// 1. It does not move from `create` on, and stays until the task has left.
/// 2. `callback` and `task` belong to `create` until it returns, and then to the task. Inspectors read `task`
///    under the lock of the registry, from `create` until `ended`.
/// 3. The task calls `ended` once, from inside, before it tells its parent.
pub(crate) struct SoloParent {
    /// Linked into the registry from the start of the task until it has ended.
    entry: Entry,
    link: ParentLink,
    callback: UnsafeCell<Option<RawCallback<AskStop>>>,
    task: Cell<Option<InList<'static>>>,
    name: Option<Arc<str>>,
}

// SAFETY: link and name do not change; the other fields belong to one thread at a time: rule 2.
unsafe impl Sync for SoloParent {}
// SAFETY: it is moved only before it is used: rule 1.
unsafe impl Send for SoloParent {}

impl SoloParent {
    /// Creates the parent of a task with this link.
    pub(crate) fn new(link: ParentLink, name: Option<Arc<str>>) -> Self {
        let (callback, task) = (UnsafeCell::new(None), Cell::new(None));
        Self { entry: Entry::new(), link, callback, task, name }
    }

    /// Returns the environment of the task.
    pub(crate) fn env(&self) -> &Env {
        self.link.env()
    }

    /// Returns the name of the task, if it was given one.
    pub(crate) fn name(&self) -> Option<&Arc<str>> {
        self.name.as_ref()
    }

    /// Creates the task. Returns the future if there is no memory.
    ///
    /// # Safety
    /// Rules 1 and 3: called once. The ending calls [`ended`](SoloParent::ended); what it borrows outlives the
    /// task. The caller posts the task.
    ///
    /// # Panics
    /// If the future must stay on this thread, and the executor has another one.
    pub(crate) unsafe fn create<F: Future, M: Ending<F::Output>>(
        &self,
        future: Spawnable<F>,
        ending: M,
        location: &'static Location<'static>,
    ) -> Result<NewTask<F, M>, F> {
        assert!(future.may_run_under(&self.link), "a local task is started on the thread of its executor");
        // SAFETY: contracts of `NewTask::create`: 1 is rule 1; 2: `may_run_under`; 3 is one of this function. Rules 2
        // and 3: the task is shown, and the callback registered, until `ended`, which comes before the task tells
        // its parent; both before the task can run. The environment with its token is in the link, or outlives it.
        unsafe {
            let task = NewTask::create(future, ending, &self.link, location)?;
            let (known, ask_stop) = task.untyped.known();
            self.show(known, ask_stop);
            Ok(task)
        }
    }

    /// Shows the task to inspectors, and registers its stop callback.
    ///
    /// # Safety
    /// Rules 2 and 3: called by `create`, for a task that cannot run yet.
    #[inline(never)]
    unsafe fn show(&self, task: InList<'static>, ask_stop: AskStop) {
        self.task.set(Some(task));
        // SAFETY: rule 1: the parent does not move; rule 2: the callback belongs to `create`, which calls this.
        unsafe {
            self.entry.link(NonNull::from(self));
            (*self.callback.get()).insert(RawCallback::new(ask_stop)).register(self.link.env().stop());
        }
    }

    /// Removes the task from the registry, and the stop callback.
    ///
    /// # Safety
    /// Rule 3.
    pub(crate) unsafe fn ended(&self) {
        // SAFETY: rule 2: the callback belongs to the task. `create` linked the entry and registered the
        // callback before the task could run. Rule 3 of the registry: an ending holds no lock.
        unsafe {
            self.entry.unlink();
            if let Some(callback) = &*self.callback.get_const() {
                callback.remove();
            }
        }
    }
}

impl DropOutOfLine for SoloParent {
    #[inline(never)]
    fn drop_out_of_line(parent: LastUse<'_, Self>) {
        parent.drop_here();
    }
}

impl Visit for SoloParent {
    fn visit(&self, found: &mut Found) {
        if let Some(task) = self.task.get() {
            found.task(task, self.link.parent());
            if let Some(name) = &self.name {
                found.name(task.id(), name);
            }
        }
    }
}
