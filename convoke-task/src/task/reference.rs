//! Typed references to a task. Each type names the fact that keeps the task alive, and permits what its
//! holder may do; code that has one is safe code. The functions that create them are in `task/` only.
//!
//! | type | fact | permits |
//! | --- | --- | --- |
//! | [`TaskId`] | none: an address to compare | nothing |
//! | [`Alive`] | the memory is there for `'a` | wake, ask for a stop, count a reference |
//! | [`TaskRef`] | a counted reference | the same, for as long as it exists |
//! | [`InList`] | the task is in a list of its parent, whose lock is held | read its state, ask it to stop later |
//! | [`Leaving`] | the task has ended and is telling its parent, once | its parent link; to be removed |

#![allow(unsafe_code)]

use core::fmt;
use core::marker::PhantomData;
use core::mem::ManuallyDrop;
use core::num::NonZero;
use core::ptr::NonNull;

use convoke_core::Executor;
use convoke_core::raw::{OwnerId, OwnerThread, Runnable};

use super::header::{NotLeft, TaskHeader};
use super::inside::report_leak;
use super::parent_link::{List, ParentLink};
use super::queued::Queued;
use super::remote_wake::send_remote_wake;
use super::state::{Access, State, Wake};
use super::stop_walk::StopWalk;

/// The address of a task, for inspectors: it is compared and never dereferenced.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct TaskId(NonZero<usize>);

impl TaskId {
    #[inline]
    pub(super) fn of(task: NonNull<TaskHeader>) -> Self {
        Self(task.addr())
    }

    /// Returns the address.
    pub(crate) fn address(self) -> usize {
        self.0.get()
    }
}

impl fmt::Debug for TaskId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TaskId({:#x})", self.0)
    }
}

/// A task whose memory is alive, known by its address. A copy of it is no counted reference. One of these
/// facts holds for `'a`, or until the first call that wakes the task or asks it to stop, which is then the
/// last use:
///
/// 1. there is a counted reference to the task;
/// 2. the task does not leave: a thread is inside, holds its runnable, or excludes that it runs;
/// 3. a stop callback of its parent runs, which the task removes and waits for before it leaves;
/// 4. the task has ended, and the thread has it to itself until it frees it or gives up its own reference.
#[derive(Clone, Copy)]
pub(crate) struct Alive<'a> {
    task: NonNull<TaskHeader>,
    _alive: PhantomData<&'a TaskHeader>,
}

impl<'a> Alive<'a> {
    /// Creates a reference to a task that is alive.
    ///
    /// # Safety
    /// One of the facts 1 to 4 at the type holds.
    #[inline]
    pub(super) unsafe fn new(task: NonNull<TaskHeader>) -> Self {
        Self { task, _alive: PhantomData }
    }

    /// Returns the address of the task.
    #[inline]
    pub(super) fn address(self) -> NonNull<TaskHeader> {
        self.task
    }

    /// Returns the header.
    #[inline]
    pub(super) fn header(self) -> &'a TaskHeader {
        // SAFETY: facts 1 to 4 at the type, one of which `new` requires: the memory is there for `'a`.
        unsafe { self.task.as_ref() }
    }

    /// Adds a reference.
    #[inline]
    pub(crate) fn counted(self) -> TaskRef {
        let header = self.header();
        header.state.add_reference(header.access());
        TaskRef(self.task)
    }

    /// Wakes the task.
    #[inline]
    pub(crate) fn wake(self) {
        self.change(State::wake);
    }

    /// Asks the task to stop, and adds the scopes that are open in it to the walk.
    pub(crate) fn ask_stop(self, walk: &mut StopWalk) {
        self.ask(self.header().access(), None, walk);
    }

    /// Asks the task to stop, as its owner thread does: for that thread, or for one that keeps it out. A task
    /// that is told to be posted is not done, and so has not left.
    pub(super) fn ask_stop_as_owner(self, walk: &mut StopWalk) {
        self.ask(Access::Local, None, walk);
    }

    #[inline]
    fn ask(self, access: Access, link: Option<NonNull<ParentLink>>, walk: &mut StopWalk) {
        let header = self.header();
        let wake = header.state.ask_stop(access);
        // Before the task is posted: it may be gone afterwards.
        walk.add_below(header);
        self.act(wake, link);
    }

    /// Refuses the runnable of the task on a remote thread.
    pub(super) fn refuse_remotely(self) {
        self.change(|state, _| state.refuse_remotely());
    }

    /// Makes a transition of the state, and does what that asks for.
    #[inline]
    fn change(self, transition: impl FnOnce(&State, Access) -> Wake) {
        let header = self.header();
        self.act(transition(&header.state, header.access()), None);
    }

    /// Does what a transition of this task's state has just asked for. `link` is its parent link, if the task
    /// may leave meanwhile and so not lead there any more.
    #[inline]
    fn act(self, wake: Wake, link: Option<NonNull<ParentLink>>) {
        match wake {
            Wake::Nothing => {}
            // SAFETY: rule 1 of `Queued`: `Wake::Post` makes the caller the holder of the runnable.
            Wake::Post => unsafe { Queued::new(self.task) }.post_out_of_line(),
            // SAFETY: `Wake::Send` lets the caller send the remote wake, and read the parent link: rule 3 of
            // the header. `ToAsk::ask` passes the link if the task may have left.
            Wake::Send => unsafe {
                let link = link.unwrap_or_else(|| NonNull::from(NotLeft::new(self.header()).parent_link()));
                send_remote_wake(self.task, link);
            },
        }
    }
}

/// A counted reference to a task.
#[derive(Debug)]
pub(crate) struct TaskRef(NonNull<TaskHeader>);

impl TaskRef {
    /// Creates a reference that takes over one that is already counted.
    ///
    /// # Safety
    /// A reference is counted that nothing else gives up: a waker's that is consumed, a table entry's that
    /// was removed, the task's own, or the one that it was made with for its handle.
    #[inline]
    pub(super) unsafe fn from_counted(task: NonNull<TaskHeader>) -> Self {
        Self(task)
    }

    /// Borrows the reference.
    #[inline]
    pub(crate) fn alive(&self) -> Alive<'_> {
        Alive { task: self.0, _alive: PhantomData }
    }

    /// Gives the reference up without counting it down: the caller, or a table of its, owns it now.
    #[inline]
    pub(super) fn into_counted(self) -> NonNull<TaskHeader> {
        ManuallyDrop::new(self).0
    }

    /// Wakes the task and drops the reference: in one step, on the owner thread.
    #[inline]
    pub(super) fn wake_and_drop(self) {
        let header = self.alive().header();
        if header.access() == Access::Local
            && let Some(wake) = header.state.wake_and_drop_locally()
        {
            let task = self.into_counted();
            if wake == Wake::Post {
                // SAFETY: rule 1 of `Queued`: `Wake::Post` makes the caller the holder of the runnable. The reference
                // is given up, but the task has not left, or its count would be merged; and its owner thread, which
                // could let it leave, is this one.
                unsafe { Queued::new(task) }.post();
            }
            return;
        }
        self.wake_and_drop_counted();
    }

    /// Wakes the task and drops the reference, on a remote thread or if references are merged.
    #[cold]
    #[inline(never)]
    fn wake_and_drop_counted(self) {
        self.alive().wake();
    }
}

impl Drop for TaskRef {
    #[inline]
    fn drop(&mut self) {
        let header = self.alive().header();
        if header.state.drop_reference(header.access()) {
            // `Cell::call`, the one function that knows the type, finds the task done and frees it.
            // SAFETY: this was the last reference, so the task has left and is not queued.
            drop(unsafe { Runnable::new(self.0.cast()) });
        }
    }
}

/// A task that is in a list of its parent, or known to it otherwise, and stays so for `'a`: the lock of the
/// parent, or of the registry, is held.
#[derive(Clone, Copy)]
pub(crate) struct InList<'a>(Alive<'a>);

impl<'a> InList<'a> {
    /// Creates one.
    ///
    /// # Safety
    /// The task is known to its parent and stays so for `'a`: it has not left, nor told its parent.
    #[inline]
    pub(super) unsafe fn new(task: NonNull<TaskHeader>) -> Self {
        Self(Alive { task, _alive: PhantomData })
    }

    #[inline]
    pub(super) fn header(self) -> &'a TaskHeader {
        self.0.header()
    }

    /// Returns the address of the task.
    pub(crate) fn id(self) -> TaskId {
        TaskId::of(self.0.task)
    }

    /// Adds a reference.
    ///
    /// # Safety
    /// The task is not about to leave on another thread, which may have found that nothing refers to it; or
    /// its parent says when it leaves that it let others refer to it (`Known::ToOthers`).
    #[cfg(feature = "testing")]
    pub(crate) unsafe fn counted(self) -> TaskRef {
        self.0.counted()
    }

    /// Returns true if this is the task's owner thread and the task has not ended.
    #[cfg(feature = "testing")]
    pub(crate) fn is_alive_in(self, owner: OwnerId) -> bool {
        self.header().is_alive_in(owner)
    }

    /// Prepares to ask the task to stop when the lock is released.
    ///
    /// # Safety
    /// Its parent says when it leaves that it let others refer to it (`Known::ToOthers`).
    pub(super) unsafe fn to_ask(self) -> ToAsk {
        // SAFETY: rule 3 of the header: the task has not told its parent, so its parent link is alive.
        let link = NonNull::from(unsafe { NotLeft::new(self.header()) }.parent_link());
        ToAsk { task: self.0.counted(), link }
    }
}

/// A task that its parent asks to stop without holding its lock: the task may leave meanwhile.
pub(crate) struct ToAsk {
    task: TaskRef,
    /// The parent link that the task had under the lock.
    link: NonNull<ParentLink>,
}

impl ToAsk {
    /// Asks the task to stop, and adds the scopes that are open in it to the walk. The parent, whose link this
    /// is, borrows it.
    pub(crate) fn ask(self, parent: &ParentLink, walk: &mut StopWalk) {
        // The link of a task lies in its parent, which is borrowed, or in the task itself, which `self` refers
        // to: so it is alive, although the task may not lead there any more.
        let _ = parent;
        let task = self.task.alive();
        task.ask(task.header().access(), Some(self.link), walk);
    }
}

/// The one chance of a task that has ended to tell its parent: until this is used up, the task has not left,
/// and its parent link is alive.
pub(crate) struct Leaving<'a>(Alive<'a>);

/// Proof that no list of the parent leads to the task any more; and if its parent let others refer to it.
#[derive(Debug)]
pub(crate) struct Left(pub(super) Known);

/// Says if the parent let others refer to a task that it knew.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Known {
    /// Only the parent referred to the task.
    ToTheParent,
    /// The parent let others refer to the task, at some time before it was told that the task leaves.
    ToOthers,
}

impl<'a> Leaving<'a> {
    /// Lets a task that has ended tell its parent.
    ///
    /// # Safety
    /// The task has ended and has not told its parent: the state has said once that it leaves. It is alive
    /// for `'a`.
    #[inline]
    pub(super) unsafe fn new(task: NonNull<TaskHeader>) -> Self {
        Self(Alive { task, _alive: PhantomData })
    }

    #[inline]
    pub(super) fn task(&self) -> NonNull<TaskHeader> {
        self.0.task
    }

    #[inline]
    fn not_left(&self) -> NotLeft<'a> {
        // SAFETY: rule 3 of the header: the task has not told its parent, which this token is for.
        unsafe { NotLeft::new(self.0.header()) }
    }

    /// Returns the parent link.
    #[inline]
    pub(crate) fn parent_link(&self) -> &'a ParentLink {
        self.not_left().parent_link()
    }

    /// Returns true, and reports it, if the outcome must not leave its thread and this is another one: the executor has
    /// ended before the task. The outcome is then leaked.
    #[inline]
    pub(crate) fn must_stay_on_its_thread(&self) -> bool {
        OwnerId::here_may_be_closed() && self.0.header().is_local() && self.is_elsewhere()
    }

    /// Returns true, and reports it, if this is not the owner thread of the task. A task that is not `Send` does not
    /// change its executor, so it is that of its parent link.
    #[cold]
    fn is_elsewhere(&self) -> bool {
        let (header, executor) = (self.0.header(), self.parent_link().env().executor());
        let is_owner = |owner: &OwnerThread| header.is_owned_by(owner.id()) && owner.is_own_thread();
        let is_elsewhere = !executor.owner_thread().is_some_and(is_owner);
        if is_elsewhere {
            report_leak(self.not_left().kind().location);
        }
        is_elsewhere
    }

    /// Leaves a parent that has no list. A root task has nothing to be removed from.
    #[inline]
    pub(crate) fn leave_no_list(self) -> Left {
        // Rule 4 of the header: `list` is guarded by the lock of a parent that has lists. This one has none.
        let list = self.0.header().list.get();
        assert!(list == List::Nowhere, "a task in a list is removed from it before it leaves");
        Left(Known::ToTheParent)
    }
}
