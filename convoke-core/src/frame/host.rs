//! The task below the frames, as seen by what is awaited in it: operations are its guests, and it does not end before they
//! have left.

use core::alloc::Layout;
use core::fmt;
use core::ptr::NonNull;

use crate::Env;

/// A task, as what is awaited in it sees it. A task type of one's own implements it to be able to await senders.
///
/// An operation that is awaited is a *guest*: it has memory of the host and borrows its environment. If the future that
/// awaits it is dropped, the guest stays until it has completed, and the host with it.
///
/// # Safety
/// From [`receive`](Host::receive) until the guest has left, by [`dismiss`](Host::dismiss) or [`HostRef::leave`]: the memory belongs
/// to the guest, [`env`](Host::env) stays where it is, and the host does not complete.
pub unsafe trait Host {
    /// The environment that the task was started in. Its stop token is not looked at.
    fn env(&self) -> &Env;

    /// Takes in a guest and gives it memory. Called while the task is polled.
    ///
    /// # Panics
    /// If the frame allocator has no memory left: the panic says so, and is the outcome of the task.
    fn receive(&self, room: Layout) -> Guest;

    /// The guest has left; its memory is taken back. Called while the task is polled.
    ///
    /// # Safety
    /// The guest is of this host and has completed; its memory is not used any more.
    unsafe fn dismiss(&self, guest: Guest);

    /// Its address, for guests.
    fn host_ref(&self) -> HostRef;
}

/// A guest's room, and its host.
#[derive(Clone, Copy, Debug)]
pub struct Guest {
    /// Its memory.
    pub memory: NonNull<u8>,
    /// What was asked for.
    pub room: Layout,
    /// Whose guest it is.
    pub host: HostRef,
}

/// The address of a host, for guests that leave from anywhere.
#[derive(Clone, Copy)]
pub struct HostRef {
    host: NonNull<()>,
    kind: &'static HostKind,
}

/// A kind of host: a `static`, whose address is its identity.
#[derive(Debug)]
pub struct HostKind {
    leave: unsafe fn(NonNull<()>, NonNull<u8>, Layout),
}

impl HostKind {
    /// Hosts of this kind are left by this function, which is given their address, and the guest's memory.
    pub const fn new(leave: unsafe fn(NonNull<()>, NonNull<u8>, Layout)) -> Self {
        Self { leave }
    }
}

// SAFETY: it is an address and a function; using it is `unsafe`, and asks that the host still waits.
unsafe impl Send for HostRef {}
// SAFETY: as above.
unsafe impl Sync for HostRef {}

impl HostRef {
    /// A host at this address, of this kind.
    #[inline]
    pub const fn new(host: NonNull<()>, kind: &'static HostKind) -> Self {
        Self { host, kind }
    }

    /// Where the host is.
    #[inline]
    pub fn address(self) -> NonNull<()> {
        self.host
    }

    /// Whether the host is at this address.
    #[inline]
    pub fn is_at(self, host: NonNull<()>) -> bool {
        self.host == host
    }

    /// Whether the host is of this kind: so a kind of task recognises its own.
    #[inline]
    pub fn is_of(self, kind: &'static HostKind) -> bool {
        core::ptr::eq(self.kind, kind)
    }

    /// The guest leaves, on whatever thread.
    ///
    /// # Safety
    /// `guest` is of this host, has completed, and its memory is not used any more. The host may be gone when this returns.
    pub unsafe fn leave(guest: Guest) {
        // SAFETY: the caller's; the host waits for its guests.
        unsafe { (guest.host.kind.leave)(guest.host.host, guest.memory, guest.room) }
    }
}

impl fmt::Debug for HostRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("HostRef").field(&self.host).finish()
    }
}
