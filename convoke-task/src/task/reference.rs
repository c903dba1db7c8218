//! Typed references to a task. The one who creates such a reference names the reason why the task is alive;
//! what its holder may do is then safe code.

#![allow(unsafe_code)]

use core::marker::PhantomData;
use core::mem::ManuallyDrop;
use core::ptr::NonNull;

use convoke_core::raw::Runnable;

use super::header::TaskHeader;
use super::state::{Access, State, Wake};

/// A task whose memory is alive, known by its address. A copy of it is no counted reference.
#[derive(Clone, Copy)]
pub(crate) struct Alive<'a> {
    task: NonNull<TaskHeader>,
    _alive: PhantomData<&'a TaskHeader>,
}

impl<'a> Alive<'a> {
    /// Creates a reference to a task that is alive.
    ///
    /// # Safety
    /// For `'a` there is a counted reference to the task; or the task does not leave before the first call
    /// that wakes it or asks it to stop, which is then the last use.
    #[inline]
    pub(crate) unsafe fn new(task: NonNull<TaskHeader>) -> Self {
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
        // SAFETY: the task is alive: the promise of `new`'s caller.
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

    /// Asks the task to stop.
    pub(crate) fn ask_stop(self) {
        self.change(State::ask_stop);
    }

    /// Asks the task to stop, as its owner thread does: for that thread, or for one that keeps it out. A task
    /// that is told to be posted is not done, and so has not left.
    pub(super) fn ask_stop_as_owner(self) {
        self.change(|state, _| state.ask_stop(Access::Local));
    }

    /// Refuses the runnable of the task on a remote thread.
    pub(super) fn refuse_remotely(self) {
        self.change(|state, _| state.refuse_away());
    }

    /// Makes a transition of the state, and does what that asks for.
    #[inline]
    fn change(self, transition: impl FnOnce(&State, Access) -> Wake) {
        let header = self.header();
        self.act(transition(&header.state, header.access()));
    }

    /// Does what a transition of this task's state has just asked for.
    #[inline]
    fn act(self, wake: Wake) {
        match wake {
            Wake::Nothing => {}
            // SAFETY: `Wake::Post` makes the caller the holder of the runnable.
            Wake::Post => unsafe { TaskHeader::post(self.task) },
            // SAFETY: `Wake::Send` lets the caller send the remote wake, and read the parent link: rule 3.
            Wake::Send => unsafe {
                TaskHeader::send_remote_wake(self.task, NonNull::from(self.header().parent_link()));
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
    /// The caller owns a counted reference, and gives it up.
    #[inline]
    pub(super) unsafe fn from_counted(task: NonNull<TaskHeader>) -> Self {
        Self(task)
    }

    /// Borrows the reference.
    #[inline]
    pub(crate) fn alive(&self) -> Alive<'_> {
        // SAFETY: `self` is a counted reference.
        unsafe { Alive::new(self.0) }
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
            && let Some(wake) = header.state.wake_and_drop_at_home()
        {
            // SAFETY: the reference is given up, and the task, which has not left, keeps itself alive.
            return unsafe { Alive::new(self.into_counted()) }.act(wake);
        }
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
