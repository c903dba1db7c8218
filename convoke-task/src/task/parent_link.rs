//! The link from a task to its parent: what it inherits from there, and the list links by which its parent
//! knows it.

#![allow(unsafe_code)]

use core::fmt;
use core::marker::PhantomPinned;
use core::ptr::NonNull;
use std::time::Instant;

use convoke_core::raw::OwnerId;
use convoke_core::{Env, Executor, StopReason};

use super::header::TaskHeader;
use super::spawn_site::Sites;
use convoke_core::raw::{contain, report_panic};

/// The part that all tasks of one parent have in common. It is a field of the parent (a scope, a launch, the
/// operation of a connected task) and outlives the tasks.
pub(crate) struct ParentLink {
    env: NonNull<Env>,
    /// The owner thread of the environment's executor, asked for once.
    home: OwnerId,
    deadline: Option<Instant>,
    /// The task above, for inspectors. Compared, never dereferenced.
    pub(crate) parent: Option<NonNull<TaskHeader>>,
    /// Returns why the parent asked its tasks to stop.
    reason: Reason,
    /// The lines of the program that spawned its tasks. They point back to the link.
    sites: Sites,
    _pinned: PhantomPinned,
}

/// Returns why the parent of a link asked its tasks to stop.
type Reason = unsafe fn(NonNull<ParentLink>) -> Option<StopReason>;

impl ParentLink {
    /// Creates a link with this environment. By `reason` the parent says why it asked its tasks to stop.
    ///
    /// # Safety
    /// The environment and the parent outlive the link, `home` is the owner thread of the environment's
    /// executor, and `reason` may be called while there are tasks.
    pub(crate) unsafe fn new(
        env: NonNull<Env>,
        home: OwnerId,
        deadline: Option<Instant>,
        parent: Option<NonNull<TaskHeader>>,
        reason: Reason,
    ) -> Self {
        Self { env, home, deadline, parent, reason, sites: Sites::new(), _pinned: PhantomPinned }
    }

    /// Returns the environment of the tasks.
    #[inline]
    pub(crate) fn env(&self) -> &Env {
        // SAFETY: the environment outlives the link: the promise of `new`'s caller.
        unsafe { self.env.as_ref() }
    }

    #[inline]
    /// Returns the deadline of the tasks.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.deadline
    }

    /// Returns the owner thread of tasks that are spawned here.
    #[inline]
    pub(crate) fn home(&self) -> OwnerId {
        self.home
    }

    #[inline]
    /// Returns the spawn sites.
    pub(super) fn sites(&self) -> &Sites {
        &self.sites
    }

    /// Returns the owner thread of what runs in this environment. If `Executor::owner_thread` panics there is
    /// none, and the tasks are shared.
    pub(crate) fn home_of(env: &Env) -> OwnerId {
        let mut home = OwnerId::NONE;
        contain(report_panic, || {
            home = env.executor().owner_thread().map_or(OwnerId::NONE, |home| home.id())
        });
        home
    }

    /// Returns why the parent asked its tasks to stop.
    pub(crate) fn stop_reason(&self) -> Option<StopReason> {
        // SAFETY: there are tasks, or this would not be asked: the promise of `new`'s caller.
        unsafe { (self.reason)(NonNull::from(self)) }
    }
}

impl Drop for ParentLink {
    #[inline]
    fn drop(&mut self) {
        let env = self.env;
        // SAFETY: all tasks have left. The environment is alive if there are sites that were allocated; that
        // of a link with one task may be gone, and is not asked for.
        unsafe { self.sites.free(|| env.as_ref().allocator()) };
    }
}

impl fmt::Debug for ParentLink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ParentLink").field("env", self.env()).finish_non_exhaustive()
    }
}

/// The links of a task in a list of its parent.
#[derive(Debug)]
pub(crate) struct Links {
    pub(crate) next: *mut TaskHeader,
    /// Null if the task is the first.
    pub(crate) previous: *mut TaskHeader,
}

/// The lists of children that a scope has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum List {
    /// Children that were not asked to stop.
    Running,
    /// Children that were asked to stop; others may refer to them for that.
    Asked,
    /// Children that were asked to stop before they ran.
    Late,
}
