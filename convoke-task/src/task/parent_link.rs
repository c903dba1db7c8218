//! The link from a task to its parent: what it inherits from there, and the list links by which its parent
//! knows it.

#![allow(unsafe_code)]

use core::fmt;
use core::marker::PhantomPinned;
use core::ptr::NonNull;
use std::time::Instant;

use convoke_core::raw::{DropOutOfLine, LastUse, OwnerId};
use convoke_core::{Env, Executor, StopReason};

use super::header::{Inherited, TaskHeader};
use super::reference::TaskId;
use super::spawn_site::Sites;
use convoke_core::raw::{contain, report_panic};

/// The part that all tasks of one parent have in common. It is a field of the parent (a scope, a launch, the
/// operation of a connected task) or of the one task under it, and stays until the tasks have left. Rules:
///
/// 1. An environment that is borrowed outlives the link, except for its destructor, which does not use it
///    unless spawn sites were allocated.
/// 2. The owner is alive while there is a task under the link.
pub(crate) struct ParentLink {
    env: LinkEnv,
    /// The owner thread of the environment's executor, asked for once.
    owner_id: OwnerId,
    /// The bits that the headers of its tasks begin with.
    inherited: Inherited,
    deadline: Option<Instant>,
    /// The task above, for inspectors.
    parent: Option<TaskId>,
    owner: Option<ListOwner>,
    /// The lines of the program that spawned its tasks. They point back to the link.
    sites: Sites,
    _pinned: PhantomPinned,
}

/// The environment of a link.
enum LinkEnv {
    Own(Env),
    /// Rule 1.
    Borrowed(NonNull<Env>),
}

impl LinkEnv {
    #[inline]
    fn get(&self) -> &Env {
        match self {
            Self::Own(env) => env,
            Self::Borrowed(env) => Self::borrowed(env),
        }
    }

    // Apart, so that the common case is a branch that is not taken.
    #[cold]
    fn borrowed(env: &NonNull<Env>) -> &Env {
        // SAFETY: rule 1: it outlives the link, and the destructor of a link that borrows does not ask: its one
        // spawn site is not allocated.
        unsafe { env.as_ref() }
    }
}

/// The parent that has the tasks of a link in its lists: its address, and how to ask it for the reason of a
/// stop.
#[derive(Clone, Copy)]
pub(crate) struct ListOwner {
    address: NonNull<()>,
    reason: unsafe fn(NonNull<()>) -> Option<StopReason>,
}

// SAFETY: the address is dereferenced by `reason` alone, on any thread: `ListOwner::new` requires that.
unsafe impl Send for ListOwner {}
// SAFETY: it does not change, and `reason` may be called by any thread.
unsafe impl Sync for ListOwner {}

impl ListOwner {
    /// Creates the owner at `address`, which returns by `reason` why it asked its tasks to stop.
    ///
    /// # Safety
    /// While there is a task under a link with this owner, any thread may call `reason` with the address.
    pub(crate) unsafe fn new(
        address: NonNull<()>,
        reason: unsafe fn(NonNull<()>) -> Option<StopReason>,
    ) -> Self {
        Self { address, reason }
    }

    /// Returns the address.
    #[inline]
    pub(crate) fn address(self) -> NonNull<()> {
        self.address
    }
}

impl ParentLink {
    /// Creates a link with this environment. The tasks are in the lists of `owner`, or in none.
    // Inlined, so that it is written where it stays: a link that a call returns is copied there.
    #[inline]
    pub(crate) fn new(
        env: Env,
        deadline: Option<Instant>,
        parent: Option<TaskId>,
        owner: Option<ListOwner>,
    ) -> Self {
        let (owner_id, inherited) = Self::of_env(&env);
        let (env, sites) = (LinkEnv::Own(env), Sites::new());
        Self { env, owner_id, inherited, deadline, parent, owner, sites, _pinned: PhantomPinned }
    }

    /// Creates a link that borrows its environment, for a task in no list.
    ///
    /// # Safety
    /// The environment stays until all tasks under the link have left: rule 1.
    pub(crate) unsafe fn borrowing(env: NonNull<Env>, parent: Option<TaskId>) -> Self {
        let (env, sites) = (LinkEnv::Borrowed(env), Sites::new());
        let ((owner_id, inherited), deadline) = (Self::of_env(env.get()), env.get().stop().deadline());
        Self { env, owner_id, inherited, deadline, parent, owner: None, sites, _pinned: PhantomPinned }
    }

    /// Creates a link for one task under the same parent, with another environment.
    pub(crate) fn with_env(&self, env: Env) -> Self {
        Self::new(env, self.deadline, self.parent, self.owner)
    }

    /// Returns the environment of the tasks.
    #[inline]
    pub(crate) fn env(&self) -> &Env {
        self.env.get()
    }

    /// Returns the deadline of the tasks.
    #[inline]
    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.deadline
    }

    /// Returns the task above.
    pub(crate) fn parent(&self) -> Option<TaskId> {
        self.parent
    }

    /// Returns the parent that has the tasks in its lists.
    #[inline]
    pub(crate) fn owner(&self) -> Option<ListOwner> {
        self.owner
    }

    /// Returns the owner thread of tasks that are spawned here.
    #[inline]
    pub(crate) fn owner_id(&self) -> OwnerId {
        self.owner_id
    }

    /// Returns the bits that the headers of its tasks begin with.
    #[inline]
    pub(super) fn inherited(&self) -> Inherited {
        self.inherited
    }

    /// Returns true if the tasks run on this thread alone.
    #[inline]
    pub(crate) fn is_owned_here(&self) -> bool {
        self.owner_id == OwnerId::here() && self.owner_id != OwnerId::NONE
    }

    /// Returns the spawn sites.
    #[inline]
    pub(super) fn sites(&self) -> &Sites {
        &self.sites
    }

    /// Returns the owner thread of work that runs in this environment, and the bits that its headers begin with. If
    /// `Executor::owner_thread` panics there is none, and the tasks are shared.
    #[inline(never)]
    fn of_env(env: &Env) -> (OwnerId, Inherited) {
        let mut owner_id = OwnerId::NONE;
        contain(report_panic, || {
            owner_id = env.executor().owner_thread().map_or(OwnerId::NONE, |owner| owner.id())
        });
        (owner_id, Inherited::of(env, owner_id))
    }

    /// Returns why the parent asked its tasks to stop: the owner of their lists if there is one, else the
    /// stop token of the environment. Called for a task that has not left.
    pub(super) fn stop_reason(&self) -> Option<StopReason> {
        match self.owner {
            // SAFETY: rule 2: a task asks, so there is one.
            Some(owner) => unsafe { (owner.reason)(owner.address) },
            None => self.env().stop().reason(),
        }
    }
}

impl DropOutOfLine for ParentLink {
    #[inline(never)]
    fn drop_out_of_line(link: LastUse<'_, Self>) {
        link.drop_here();
    }
}

impl Drop for ParentLink {
    fn drop(&mut self) {
        // SAFETY: all tasks have left, as said at the type. Sites come from the allocator of the environment.
        unsafe { self.sites.free(|| self.env().allocator()) };
    }
}

impl fmt::Debug for ParentLink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ParentLink").finish_non_exhaustive()
    }
}

/// The links of a task in a list of its parent.
#[derive(Debug)]
pub(super) struct Links {
    pub(super) next: *mut TaskHeader,
    /// Null if the task is the first.
    pub(super) previous: *mut TaskHeader,
}

/// The lists of children that a parent has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum List {
    /// No list: a root task, or one that was not added yet.
    Nowhere,
    /// Children that were not asked to stop.
    Running,
    /// Children that were asked to stop; others may refer to them for that.
    Asked,
    /// Children that were asked to stop before they ran.
    Late,
}
