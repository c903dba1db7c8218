//! What the first task of a chain stands on: its environment, owned here, and its link to the stop token in there.

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

/// See the head of this file. It belongs to `start` until that has posted the task, and then to the task.
#[repr(C)]
pub(crate) struct RootParent {
    /// First, so that its address is ours.
    place: ParentLink,
    env: Env,
    callback: UnsafeCell<Option<RawCallback<AskStop>>>,
    /// In the registry of those who look, from the start of the task until it has ended.
    entry: Entry,
    task: Cell<Option<NonNull<TaskHeader>>>,
    name: Option<Arc<str>>,
}

// SAFETY: the environment is shared; the callback is used as is said above.
unsafe impl Sync for RootParent {}
// SAFETY: it is moved only before it is used.
unsafe impl Send for RootParent {}

impl RootParent {
    /// RootParent that will lie at this address.
    ///
    /// # Safety
    /// What is returned is put there before it is used, and stays until its task has ended.
    pub(crate) unsafe fn new(at: NonNull<Self>, env: Env, name: Option<Arc<str>>) -> Self {
        let (home, deadline) = (ParentLink::home_of(&env), env.stop().deadline());
        // SAFETY: the address is that of a field, and the environment stays beside the place; `reason` asks it.
        let place = unsafe {
            let env = NonNull::new_unchecked(&raw mut (*at.as_ptr()).env);
            ParentLink::new(env, home, deadline, None, Self::reason)
        };
        let (callback, task) = (UnsafeCell::new(None), Cell::new(None));
        Self { place, env, callback, entry: Entry::new(), task, name }
    }

    pub(crate) fn env(&self) -> &Env {
        &self.env
    }

    /// # Safety
    /// There are tasks in this place.
    unsafe fn reason(place: NonNull<ParentLink>) -> Option<StopReason> {
        // SAFETY: the place is the first field (`repr(C)`).
        unsafe { place.cast::<Self>().as_ref() }.env.stop().reason()
    }

    /// Makes the task and posts it. The future comes back if there is no memory.
    ///
    /// # Safety
    /// Called once. The ground stays where it is until the ending has delivered; the ending calls [`ended`](RootParent::ended). The
    /// future is `Send`, or the task `local` and this thread at the home of the executor. What the future borrows outlives
    /// the task.
    pub(crate) unsafe fn start<F: Future, M: Ending<F::Output>>(
        &self,
        future: F,
        ending: M,
        local: bool,
        location: &'static Location<'static>,
    ) -> Result<(), F> {
        // SAFETY: the caller's: the ground stays where it is.
        let vacant = unsafe { Vacant::<F, M>::allocate(&self.place, location) };
        let Some(vacant) = vacant else { return Err(future) };
        // SAFETY: the caller's. The callback is registered before the task can run, and so before it is removed; the
        // environment with its token is beside it.
        unsafe {
            let task = vacant.fill(future, ending, &self.place, local);
            self.task.set(Some(task));
            self.entry.link(NonNull::from(self).cast(), Self::look);
            (*self.callback.get()).insert(RawCallback::new(AskStop(task))).register(self.env.stop());
            TaskHeader::post(task);
        }
        Ok(())
    }

    /// Its name, if it was given one.
    pub(crate) fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    /// Tells of the task.
    ///
    /// # Safety
    /// `ground` is one, and its task has not ended.
    unsafe fn look(ground: NonNull<()>, found: &mut Found) {
        // SAFETY: the caller's; the task was noted down before it could be looked for.
        unsafe {
            let ground = ground.cast::<Self>().as_ref();
            if let Some(task) = ground.task.get() {
                found.task(task.as_ref(), ground.place.parent);
                if let Some(name) = &ground.name {
                    found.name(task, name);
                }
            }
        }
    }

    /// The task has ended: it is not asked to stop any more.
    ///
    /// # Safety
    /// Called once, by the task's ending, from inside.
    pub(crate) unsafe fn ended(&self) {
        // SAFETY: the task has not left, and we hold no lock.
        unsafe { self.entry.unlink() };
        // SAFETY: it is the task's to remove.
        if let Some(callback) = unsafe { &*self.callback.get_const() } {
            // SAFETY: as above; it was registered by `start`.
            unsafe { callback.remove() };
        }
    }
}
