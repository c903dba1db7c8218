//! The parent of a root task: owns its environment, and passes the stop request of that environment on to the
//! task.

#![allow(unsafe_code)]

use core::cell::Cell;
use core::future::Future;
use core::panic::Location;
use core::ptr::NonNull;
use std::sync::Arc;

use convoke_core::raw::RawCallback;
use convoke_core::raw::sync::UnsafeCell;
use convoke_core::{Env, StopReason};

use crate::registry::{Entry, Found};
use crate::task::{AskStop, Ending, ParentLink, TaskHeader, Vacant};

/// The parent of a root task. Its fields belong to `start` until that has posted the task, and then to the
/// task.
#[repr(C)]
pub(crate) struct RootParent {
    /// First, so that a pointer to the parent link is a pointer to this.
    link: ParentLink,
    env: Env,
    callback: UnsafeCell<Option<RawCallback<AskStop>>>,
    /// Linked into the registry from the start of the task until it has ended.
    entry: Entry,
    task: Cell<Option<NonNull<TaskHeader>>>,
    name: Option<Arc<str>>,
}

// SAFETY: the environment is `Sync`; `callback` and `task` belong to `start` and then to the task, as said at
// the type. Inspectors read `task` under the lock of the registry, after `start` has written it.
unsafe impl Sync for RootParent {}
// SAFETY: it is moved only before it is used.
unsafe impl Send for RootParent {}

impl RootParent {
    /// Creates the parent that will lie at this address.
    ///
    /// # Safety
    /// The value is written there before it is used, and stays until its task has left.
    pub(crate) unsafe fn new(at: NonNull<Self>, env: Env, name: Option<Arc<str>>) -> Self {
        let (home, deadline) = (ParentLink::home_of(&env), env.stop().deadline());
        // SAFETY: the address of a field is not null, and the environment stays beside the link; `reason`
        // reads it.
        let link = unsafe {
            let env = NonNull::new_unchecked(&raw mut (*at.as_ptr()).env);
            ParentLink::new(env, home, deadline, None, Self::reason)
        };
        let (callback, task) = (UnsafeCell::new(None), Cell::new(None));
        Self { link, env, callback, entry: Entry::new(), task, name }
    }

    /// Returns the environment of the task.
    pub(crate) fn env(&self) -> &Env {
        &self.env
    }

    /// Returns why the task was asked to stop.
    ///
    /// # Safety
    /// The link is that of a `Self` that is alive.
    unsafe fn reason(link: NonNull<ParentLink>) -> Option<StopReason> {
        // SAFETY: the link is the first field (`repr(C)`).
        unsafe { link.cast::<Self>().as_ref() }.env.stop().reason()
    }

    /// Creates the task and posts it. Returns the future if there is no memory.
    ///
    /// # Safety
    /// Called once. The parent stays where it is until the ending has delivered, and the ending calls
    /// [`ended`](RootParent::ended). The future is `Send`, or the task `local` and this the owner thread of
    /// the executor. What the future borrows outlives the task.
    pub(crate) unsafe fn start<F: Future, M: Ending<F::Output>>(
        &self,
        future: F,
        ending: M,
        local: bool,
        location: &'static Location<'static>,
    ) -> Result<(), F> {
        // SAFETY: the parent does not move: the caller's promise.
        let vacant = unsafe { Vacant::<F, M>::allocate(&self.link, location) };
        let Some(vacant) = vacant else { return Err(future) };
        // SAFETY: the link stays until the task has left: the caller's promise. The callback is registered
        // before the task can run, and so before it is removed; the environment with its token is beside it.
        unsafe {
            let task = vacant.fill(future, ending, &self.link, local);
            self.task.set(Some(task));
            self.entry.link(NonNull::from(self).cast(), Self::look);
            (*self.callback.get()).insert(RawCallback::new(AskStop(task))).register(self.env.stop());
            TaskHeader::post(task);
        }
        Ok(())
    }

    /// Returns the name of the task, if it was given one.
    pub(crate) fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    /// Adds the task to `found`.
    ///
    /// # Safety
    /// `parent` is a `Self`, and its task has not ended.
    unsafe fn look(parent: NonNull<()>, found: &mut Found) {
        // SAFETY: the entry is unlinked before the task ends, and `start` has stored the task before it
        // linked the entry.
        unsafe {
            let parent = parent.cast::<Self>().as_ref();
            if let Some(task) = parent.task.get() {
                found.task(task.as_ref(), parent.link.parent);
                if let Some(name) = &parent.name {
                    found.name(task, name);
                }
            }
        }
    }

    /// Removes the task from the registry, and the stop callback.
    ///
    /// # Safety
    /// Called once, by the task's ending, from inside.
    pub(crate) unsafe fn ended(&self) {
        // SAFETY: rule 3 of the registry: the ending holds no lock.
        unsafe { self.entry.unlink() };
        // SAFETY: the callback belongs to the task since it was posted.
        if let Some(callback) = unsafe { &*self.callback.get_const() } {
            // SAFETY: `start` registered it before it posted the task.
            unsafe { callback.remove() };
        }
    }
}
