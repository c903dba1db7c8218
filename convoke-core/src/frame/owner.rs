//! The owner of adopted operations: the task as its awaited operations see it.
//!
//! An operation that a task awaits lies in memory of the task and borrows its environment. The future that
//! awaits it can be dropped at any time; the operation then stays until it has completed, and the task does
//! not end before it has.

#![allow(unsafe_code)]

use core::alloc::Layout;
use core::fmt;
use core::ptr::NonNull;
use core::task::Context;

use super::Frame;
use crate::Env;

/// A task, as seen by the operations that are awaited in it. A task type of one's own implements this trait
/// so that its futures can await sockets, other tasks and senders.
///
/// # Safety
/// From [`adopt`](OperationOwner::adopt) until [`free`](OperationOwner::free) or [`OwnerRef::release`]: the
/// memory belongs to the operation, [`env`](OperationOwner::env) does not move, and the owner does not
/// complete.
pub unsafe trait OperationOwner {
    /// Returns the environment that the task was started in. Its stop token is not used.
    fn env(&self) -> &Env;

    /// Allocates memory for an operation, and counts the operation until it is freed. Called while the task
    /// is polled.
    ///
    /// # Panics
    /// If the frame allocator has no memory left. The panic says so, and is the outcome of the task.
    fn adopt(&self, layout: Layout) -> AdoptedMemory;

    /// Frees the memory of an operation that has completed. Called while the task is polled.
    ///
    /// # Safety
    /// The memory is of this owner, and is not used any more.
    unsafe fn free(&self, memory: AdoptedMemory);

    /// Returns the address of the owner, for operations that complete on other threads.
    fn owner_ref(&self) -> OwnerRef;

    /// Returns false if no stop of the task was requested by now. True if one was, or if that is not known.
    fn may_be_asked_to_stop(&self) -> bool {
        true
    }

    /// Adds to the number of futures in the task that must not be dropped yet, and that are not polled each
    /// time: see [`UnderWay`]. Called while the task is polled.
    fn work_began(&self) {}

    /// Takes one from the number of such futures. Called while the task is polled.
    fn work_ended(&self) {}

    /// Returns true if there are such futures.
    fn has_work_under_way(&self) -> bool {
        false
    }
}

/// The memory of an adopted operation, and its owner.
#[derive(Clone, Copy, Debug)]
pub struct AdoptedMemory {
    /// Its address.
    pub address: NonNull<u8>,
    /// The layout that was asked for.
    pub layout: Layout,
    /// The task that it belongs to.
    pub owner: OwnerRef,
}

/// The address of an owner. Operations release their memory through it from any thread.
#[derive(Clone, Copy)]
pub struct OwnerRef {
    address: NonNull<()>,
    kind: &'static OwnerKind,
}

/// The mark of a clean-up, or of other work that must not be dropped yet, behind a foreign combinator. Such a
/// combinator polls only children that were woken, so the work cannot [hold](Frame::hold) at each poll. The
/// task keeps what it awaits while such marks exist.
///
/// Free for futures that are polled with their task's own waker: they hold at each poll.
#[derive(Debug, Default)]
pub struct UnderWay(Option<OwnerRef>);

impl UnderWay {
    /// Creates a mark that is not set.
    pub const fn new() -> Self {
        Self(None)
    }

    /// Holds the current frame; and sets the mark, if the task's own waker does not reach the caller: a future
    /// that returns `Pending` now and must not be dropped yet.
    #[inline]
    pub fn hold(&mut self, cx: &Context<'_>) {
        Frame::current(|frame| {
            if let Some(frame) = frame {
                frame.hold();
                if self.0.is_none() && !frame.is_own_waker(cx.waker()) {
                    self.set(frame);
                }
            }
        });
    }

    #[cold]
    fn set(&mut self, frame: &Frame<'_>) {
        frame.operation_owner().work_began();
        self.0 = Some(frame.operation_owner().owner_ref());
    }

    /// Removes the mark: the work has ended.
    #[inline]
    pub fn end(&mut self) {
        if let Some(owner) = self.0.take() {
            Self::ended(owner);
        }
    }

    /// Does nothing outside of the task that the mark was set in: a future that moved to another task in the
    /// middle of its clean-up leaves its mark behind, and that task waits for its foreign futures.
    #[cold]
    fn ended(owner: OwnerRef) {
        Frame::current(|frame| {
            if let Some(frame) = frame
                && owner.is_at(frame.operation_owner().owner_ref().address())
            {
                frame.operation_owner().work_ended();
            }
        });
    }
}

impl Drop for UnderWay {
    #[inline]
    fn drop(&mut self) {
        self.end();
    }
}

/// A kind of owner: a `static`, whose address is its identity.
#[derive(Debug)]
pub struct OwnerKind {
    release: unsafe fn(NonNull<()>, NonNull<u8>, Layout),
}

impl OwnerKind {
    /// Creates a kind whose owners take memory back by calling `release` with the owner's address, the memory
    /// and its layout.
    pub const fn new(release: unsafe fn(NonNull<()>, NonNull<u8>, Layout)) -> Self {
        Self { release }
    }
}

// SAFETY: it is an address and a function. Using them is `unsafe` and requires that the owner still waits.
unsafe impl Send for OwnerRef {}
// SAFETY: it has no interior mutability, and using the address and the function is `unsafe`.
unsafe impl Sync for OwnerRef {}

impl OwnerRef {
    /// Creates a reference to the owner at `address`, of this kind.
    #[inline]
    pub const fn new(address: NonNull<()>, kind: &'static OwnerKind) -> Self {
        Self { address, kind }
    }

    /// Returns the owner's address.
    #[inline]
    pub fn address(self) -> NonNull<()> {
        self.address
    }

    /// Returns true if the owner is at `address`.
    #[inline]
    pub fn is_at(self, address: NonNull<()>) -> bool {
        self.address == address
    }

    /// Returns true if the owner is of this kind: a task type recognises its own tasks by it.
    #[inline]
    pub fn is_of(self, kind: &'static OwnerKind) -> bool {
        core::ptr::eq(self.kind, kind)
    }

    /// Frees the memory of an operation that has completed, on any thread.
    ///
    /// # Safety
    /// The operation has completed, and its memory is not used any more. The owner may be gone when this
    /// returns.
    pub unsafe fn release(memory: AdoptedMemory) {
        let AdoptedMemory { address, layout, owner } = memory;
        // SAFETY: the owner waits for its operations, and this one has not been released, by the contract of
        // this function. So the owner is alive.
        unsafe { (owner.kind.release)(owner.address, address, layout) }
    }
}

impl fmt::Debug for OwnerRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("OwnerRef").field(&self.address).finish()
    }
}
