//! The owner of adopted operations: the task as its awaited operations see it.
//!
//! An operation that a task awaits lies in memory of the task and borrows its environment. The future that
//! awaits it can be dropped at any time; the operation then stays until it has completed, and the task does
//! not end before it has.

#![allow(unsafe_code)]

use core::alloc::Layout;
use core::fmt;
use core::ptr::NonNull;

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
