//! A task seen from inside: the owner of its outermost frame, and of the operations that it awaits.

#![allow(unsafe_code)]

use core::alloc::Layout;
use core::panic::Location;
use core::ptr::NonNull;
use std::time::Instant;

use convoke_core::env::Changes;
use convoke_core::raw::{
    AdoptedMemory, Call, Frame, FrameOwner, OperationOwner, OwnerId, OwnerKind, OwnerRef, abort_with, contain,
};
use convoke_core::{Env, Executor, ExecutorRef, StopReason};

use super::header::{NotLeft, TaskHeader};
use super::reference::{Alive, TaskId};

/// The kind of owner that a task is.
static TASK: OwnerKind = OwnerKind::new(|owner, memory, layout| {
    // Frees the memory of an operation that has completed, on any thread.
    let task = owner.cast::<TaskHeader>();
    // SAFETY: the task waits for its operations, so it is alive until `operation_released`, and its parent
    // link with it. A reference keeps the memory for the calls after that. The cold state exists while there
    // are operations; of it only the atomic count of `in_flight` is used (its rule 2). The contract of
    // `OwnerRef::release`: the memory came from `adopt` and is unused.
    unsafe {
        let header = task.as_ref();
        NotLeft::new(header).parent_link().env().allocator().deallocate(memory, layout);
        let counted = Alive::new(task).counted();
        if let Some(cold) = header.cold() {
            cold.operation_released();
        }
        counted.alive().wake();
    }
});

/// A task, seen from inside. While this is borrowed, this thread is inside the task: rule 2 of the header.
#[repr(transparent)]
pub(crate) struct Inside(TaskHeader);

impl Inside {
    /// Returns the task as seen from inside.
    ///
    /// # Safety
    /// Rule 2 of the header: this thread is inside the task for as long as the reference lives.
    #[inline]
    pub(super) unsafe fn new<'a>(task: NonNull<TaskHeader>) -> &'a Self {
        // SAFETY: `Self` is `repr(transparent)`, and the task is alive while a thread is inside.
        unsafe { task.cast::<Self>().as_ref() }
    }

    /// Returns the environment that the task runs in now.
    fn env_now(&self) -> &Env {
        // SAFETY: rule 2 of the header: this thread is inside.
        unsafe { self.not_left().env() }
    }

    /// Returns the executor that the task resumes on.
    pub(crate) fn executor(&self) -> &ExecutorRef {
        self.env_now().executor()
    }

    /// Returns true if the future must not leave its thread.
    pub(crate) fn is_local(&self) -> bool {
        self.0.is_local()
    }

    /// Moves the task to another executor. The caller then suspends the task, and wakes it.
    pub(crate) fn move_to(&self, executor: ExecutorRef) {
        let env = self.env_now().with(Changes::new().executor(executor));
        self.make_cold().move_to(env);
        self.move_out();
    }

    /// Returns the address of the task.
    pub(crate) fn id(&self) -> TaskId {
        TaskId::of(NonNull::from(&self.0))
    }

    /// Clears the cold state, after the future is gone and the last operation was released.
    pub(super) fn clear_cold(&self) {
        if let Some(cold) = self.cold()
            && cold.is_empty()
        {
            // SAFETY: an `Inside` is only made for the thread inside. The task calls this when its stage has no future any
            // more, so nothing borrows from the cold state, and `is_empty` says that no operation is in flight. `create_cold`
            // took the allocator from the parent link.
            unsafe { cold.clear(self.parent_link().env().allocator()) };
        }
    }

    /// Frees the environments of executors that the task has left, after a poll.
    pub(super) fn forget_past(&self) {
        if let Some(cold) = self.cold() {
            // SAFETY: an `Inside` is only made for the thread inside. The task calls this when a poll has returned, and a
            // future borrows no environment between its polls: they come from the frame, for the time of a poll.
            unsafe { cold.forget_past() };
        }
    }

    /// Passes a stop request on to the holders of the task's stop token, before the future sees it.
    #[cold]
    pub(super) fn pass_on_stop(&self) {
        if let (Some(reason), Some(cold)) = (self.requested_stop(), self.cold()) {
            cold.pass_on_stop(reason);
        }
    }

    /// Returns true if the future is to be dropped unpolled: its executor refuses it, or this is not its thread.
    #[cold]
    pub(super) fn must_not_be_polled(&self, call: Call) -> bool {
        call == Call::Stop || self.must_not_be_touched_here()
    }

    /// Returns true if the future must not leave its thread and this is another one: its executor has ended
    /// before it.
    #[inline]
    pub(super) fn must_not_be_touched_here(&self) -> bool {
        OwnerId::here_may_be_closed() && self.0.is_local() && !self.is_on_own_thread()
    }

    /// Returns true if this is the owner thread that the task was started on. An executor of the program may
    /// name another one now.
    #[cold]
    fn is_on_own_thread(&self) -> bool {
        self.executor()
            .owner_thread()
            .is_some_and(|owner| self.0.is_owned_by(owner.id()) && owner.is_own_thread())
    }

    #[inline]
    pub(crate) fn header(&self) -> &TaskHeader {
        &self.0
    }

    /// Returns the task that this thread is inside of, if there is one.
    pub(crate) fn current() -> Option<TaskId> {
        Frame::current(|frame| Self::of(frame?.operation_owner()).map(Self::id))
    }

    /// Returns the task that is this owner of operations, if it is one.
    pub(crate) fn of(owner: &dyn OperationOwner) -> Option<&Self> {
        let owner = owner.owner_ref();
        // SAFETY: an owner of kind `TASK` is a `TaskHeader`, and is alive while it is borrowed.
        owner.is_of(&TASK).then(|| unsafe { owner.address().cast::<Self>().as_ref() })
    }
}

impl FrameOwner for Inside {
    fn env(&self) -> &Env {
        self.make_cold().env(self.env_now(), self.requested_stop())
    }

    #[inline]
    fn stop_reason(&self) -> Option<StopReason> {
        self.requested_stop()
    }

    #[inline]
    fn deadline(&self) -> Option<Instant> {
        self.parent_link().deadline()
    }
}

// SAFETY: an operation is counted from `adopt` until it is freed or released, and `Cell::go_on` does not end
// the task before. The environment is the parent link's, or one that the cold state keeps while there are
// operations.
unsafe impl OperationOwner for Inside {
    #[inline]
    fn env(&self) -> &Env {
        self.env_now()
    }

    fn adopt(&self, layout: Layout) -> AdoptedMemory {
        let cold = self.make_cold();
        let (address, layout) = cold.adopt(layout, || self.env_now().allocator());
        AdoptedMemory { address, layout, owner: self.owner_ref() }
    }

    unsafe fn free(&self, memory: AdoptedMemory) {
        // SAFETY: the contract of `OperationOwner::free`: the memory came from `adopt`, and is not used any
        // more.
        unsafe {
            self.make_cold().free_operation(memory.address, memory.layout, || self.env_now().allocator())
        };
    }

    fn owner_ref(&self) -> OwnerRef {
        OwnerRef::new(NonNull::from(self).cast(), &TASK)
    }

    #[inline]
    fn may_be_asked_to_stop(&self) -> bool {
        self.header().state.stop_asked()
    }

    fn work_began(&self) {
        let under_way = &self.make_cold().under_way;
        // Saturating: futures that were forgotten count for ever, and must not make it zero.
        under_way.set(under_way.get().saturating_add(1));
    }

    fn work_ended(&self) {
        if let Some(cold) = self.cold() {
            cold.under_way.set(cold.under_way.get().saturating_sub(1));
        }
    }

    fn has_work_under_way(&self) -> bool {
        self.cold().is_some_and(|cold| cold.under_way.get() > 0)
    }
}

/// Aborts: an executor named an owner thread, and ran the task on another one.
#[cold]
pub(super) fn not_on_owner_thread() -> ! {
    abort_with(&"an executor ran a task on another thread than the owner thread that it had named. Aborting.")
}

/// Reports a future that is leaked.
#[cold]
#[inline(never)]
pub(super) fn report_leak(location: &'static Location<'static>) {
    // Contained: standard error may be closed, and the task has to end.
    contain(drop, || {
        eprintln!(
            "convoke: the executor of a task that is not `Send` (spawned at {location}) has ended before it; its \
             frame cannot be destroyed on another thread, and is leaked"
        );
    });
}
