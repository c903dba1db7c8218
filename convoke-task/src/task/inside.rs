//! A task as those inside it see it: the owner of the outermost frame, and the owner of what is awaited.

#![allow(unsafe_code)]

use core::alloc::Layout;
use core::ptr::NonNull;
use std::time::Instant;

use convoke_core::env::Changes;
use convoke_core::raw::{AdoptedMemory, Frame, FrameOwner, OperationOwner, OwnerId, OwnerKind, OwnerRef};
use convoke_core::{Env, Executor, ExecutorRef, StopReason};

use super::header::{TaskHeader, drop_reference};

/// Our kind of owner.
static TASK: OwnerKind = OwnerKind::new(Inside::release);

/// A task, seen from inside. Rule 2 of the header holds for as long as this exists.
#[repr(transparent)]
pub(crate) struct Inside(TaskHeader);

impl Inside {
    /// # Safety
    /// The caller is inside the task for as long as the reference lives.
    #[inline]
    pub(super) unsafe fn new<'a>(task: NonNull<TaskHeader>) -> &'a Self {
        // SAFETY: the types are the same in memory (`repr(transparent)`).
        unsafe { task.cast::<Self>().as_ref() }
    }

    /// The environment the task runs in now.
    fn env_now(&self) -> &Env {
        // SAFETY: rule 3 of the header, from rule 2.
        unsafe { self.0.env() }
    }

    /// The executor it resumes on.
    pub(crate) fn executor(&self) -> &ExecutorRef {
        self.env_now().executor()
    }

    /// Whether it must not leave its thread.
    pub(crate) fn is_local(&self) -> bool {
        self.0.is_local()
    }

    /// It resumes there from now on; it is for the caller to suspend it now, and to wake it.
    pub(crate) fn move_to(&self, executor: ExecutorRef) {
        let env = self.env_now().with(Changes::new().executor(executor));
        // SAFETY: rule 2 of the header: we are inside.
        unsafe {
            self.0.make_side().move_to(env);
            self.0.move_out();
        }
    }

    pub(crate) fn task(&self) -> NonNull<TaskHeader> {
        NonNull::from(&self.0)
    }

    /// The task was asked to stop: those who were given its stop token hear of it first.
    #[cold]
    pub(super) fn pass_on_stop(&self) {
        // SAFETY: rule 2 of the header: we are inside.
        if let (Some(reason), Some(side)) = unsafe { (self.0.stop_reason(), self.0.side()) } {
            side.pass_on_stop(reason);
        }
    }

    /// Whether it must not leave its thread, and this is another: its executor has ended before it.
    #[inline]
    pub(super) fn must_not_be_touched_here(&self) -> bool {
        OwnerId::here_may_be_closed() && self.0.is_local() && !self.is_on_own_thread()
    }

    /// The home is the one that the task was started in: an executor of the user's may name another now.
    #[cold]
    fn is_on_own_thread(&self) -> bool {
        self.executor().owner_thread().is_some_and(|home| self.0.lives_in(home.id()) && home.is_own_thread())
    }

    #[inline]
    pub(crate) fn header(&self) -> &TaskHeader {
        &self.0
    }

    /// The task that this thread is in, if it is one of ours.
    pub(crate) fn current() -> Option<NonNull<TaskHeader>> {
        Frame::current(|frame| Self::of(frame?.operation_owner()).map(Self::task))
    }

    /// Returns the task that owns operations, if it is one of ours.
    pub(crate) fn of(owner: &dyn OperationOwner) -> Option<&Self> {
        let owner = owner.owner_ref();
        // SAFETY: an owner of our kind is a task of ours, and is there for as long as it is borrowed.
        owner.is_of(&TASK).then(|| unsafe { owner.address().cast::<Self>().as_ref() })
    }

    /// Frees the memory of an operation that has completed, on any thread.
    ///
    /// # Safety
    /// As for `OwnerRef::release`.
    unsafe fn release(owner: NonNull<()>, memory: NonNull<u8>, layout: Layout) {
        let task = owner.cast::<TaskHeader>();
        // SAFETY: the task waits for its operations, and so it is there until `operation_released`. We take a reference for the time
        // after that. The cold state is there as long as there are operations; from outside we use only what is shared of it.
        unsafe {
            let header = task.as_ref();
            header.place().env().allocator().deallocate(memory, layout);
            header.state.add_reference(header.from());
            if let Some(side) = header.side() {
                side.operation_released();
            }
            TaskHeader::wake(task);
            drop_reference(task);
        }
    }
}

impl FrameOwner for Inside {
    fn env(&self) -> &Env {
        // SAFETY: rule 2 of the header: we are inside.
        unsafe { self.0.make_side().env(self.env_now(), self.0.stop_reason()) }
    }

    #[inline]
    fn stop_reason(&self) -> Option<StopReason> {
        // SAFETY: rule 3 of the header, from rule 2.
        unsafe { self.0.stop_reason() }
    }

    #[inline]
    fn deadline(&self) -> Option<Instant> {
        // SAFETY: as above.
        unsafe { self.0.place() }.deadline()
    }
}

// SAFETY: an operation is counted from `adopt` until it is freed or released, and the task does not end before: see `cell`. The
// environment is that of the parent link, which outlives the task.
unsafe impl OperationOwner for Inside {
    #[inline]
    fn env(&self) -> &Env {
        self.env_now()
    }

    fn adopt(&self, layout: Layout) -> AdoptedMemory {
        // SAFETY: rule 2 of the header: we are inside.
        let side = unsafe { self.0.make_side() };
        let (address, layout) = side.adopt(layout, || self.env_now().allocator());
        AdoptedMemory { address, layout, owner: self.owner_ref() }
    }

    unsafe fn free(&self, memory: AdoptedMemory) {
        // SAFETY: rule 2 of the header: we are inside. The memory is ours and unused: the caller's promise.
        unsafe {
            self.0.make_side().free_operation(memory.address, memory.layout, || self.env_now().allocator())
        };
    }

    fn owner_ref(&self) -> OwnerRef {
        OwnerRef::new(NonNull::from(self).cast(), &TASK)
    }
}
