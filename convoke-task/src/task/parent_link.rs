//! Where a task hangs: what it inherits from there, and the links by which its parent knows it.

#![allow(unsafe_code)]

use core::fmt;
use core::ptr::NonNull;
use std::time::Instant;

use convoke_core::raw::OwnerId;
use convoke_core::{Env, Executor, StopReason};

use super::header::TaskHeader;
use super::spawn_site::Sites;
use convoke_core::raw::{contain, report_panic};

/// What all tasks in one place have in common. It is part of a parent: a scope, a launch, the operation of a task that
/// was connected; and outlives the tasks.
pub(crate) struct ParentLink {
    env: NonNull<Env>,
    /// The home of the environment's executor, asked for once.
    home: OwnerId,
    deadline: Option<Instant>,
    /// The task above, for people who look. Compared, never followed.
    pub(crate) parent: Option<NonNull<TaskHeader>>,
    reason: unsafe fn(NonNull<ParentLink>) -> Option<StopReason>,
    /// Where in the program its tasks are started.
    sites: Sites,
}

impl ParentLink {
    /// A place with this environment, whose parent says by `reason` why it has asked its tasks to stop.
    ///
    /// # Safety
    /// The environment, whose home this is, and the parent outlive the place, and `reason` may be called for as long as there are tasks in it.
    pub(crate) unsafe fn new(
        env: NonNull<Env>,
        home: OwnerId,
        deadline: Option<Instant>,
        parent: Option<NonNull<TaskHeader>>,
        reason: unsafe fn(NonNull<ParentLink>) -> Option<StopReason>,
    ) -> Self {
        Self { env, home, deadline, parent, reason, sites: Sites::new() }
    }

    /// The environment of the tasks.
    #[inline]
    pub(crate) fn env(&self) -> &Env {
        // SAFETY: it outlives us: `new`'s caller.
        unsafe { self.env.as_ref() }
    }

    #[inline]
    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.deadline
    }

    /// The home of tasks that are started here.
    #[inline]
    pub(crate) fn home(&self) -> OwnerId {
        self.home
    }

    #[inline]
    pub(super) fn sites(&self) -> &Sites {
        &self.sites
    }

    /// The home of what runs in this environment. An executor whose `home` panics has none: then its tasks are shared.
    pub(crate) fn home_of(env: &Env) -> OwnerId {
        let mut home = OwnerId::NONE;
        contain(report_panic, || {
            home = env.executor().owner_thread().map_or(OwnerId::NONE, |home| home.id())
        });
        home
    }

    pub(crate) fn stop_reason(&self) -> Option<StopReason> {
        // SAFETY: `new`'s caller.
        unsafe { (self.reason)(NonNull::from(self)) }
    }
}

impl Drop for ParentLink {
    #[inline]
    fn drop(&mut self) {
        let env = self.env;
        // SAFETY: the tasks have left. The environment is there: `new`'s caller; that of a place with one task may be gone, and
        // is not asked.
        unsafe { self.sites.free(|| env.as_ref().allocator()) };
    }
}

impl fmt::Debug for ParentLink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ParentLink").field("env", self.env()).finish_non_exhaustive()
    }
}

/// A task's place in a list of its parent's.
#[derive(Debug)]
pub(crate) struct Links {
    pub(crate) next: *mut TaskHeader,
    /// Null if it is the first.
    pub(crate) previous: *mut TaskHeader,
}

/// The lists in which a scope has its children.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum List {
    /// Not asked to stop.
    Running,
    /// Asked to stop; others may refer to it for that.
    Asked,
    /// Asked from the beginning.
    Late,
}
