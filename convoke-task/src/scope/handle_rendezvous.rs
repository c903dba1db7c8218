//! Where a child and its handle meet: in the child, right behind its header. There the handle, which does not know the type of
//! the child, finds it without a pointer of its own.

#![allow(unsafe_code)]

use core::panic::Location;
use core::ptr::NonNull;
use core::task::Waker;

use convoke_core::raw::Rendezvous;
use convoke_core::raw::sync::UnsafeCell;

use super::handle::Kind;
use crate::task::TaskHeader;

/// The first field of the ending of a child with a handle.
#[repr(C)]
pub(super) struct HandleRendezvous<K: Kind> {
    pub(super) meeting: Rendezvous,
    /// Of whoever awaits the handle. The meeting says whose it is.
    pub(super) waker: UnsafeCell<Option<Waker>>,
    /// Where the child was started, for a handle that cannot know whether it has left: then its header does not say.
    pub(super) location: K::Kept,
}

impl<K: Kind> HandleRendezvous<K> {
    /// How far behind the beginning of the child it lies.
    pub(super) const AT: usize = size_of::<TaskHeader>().next_multiple_of(align_of::<Self>());

    #[inline]
    pub(super) fn new(location: &'static Location<'static>) -> Self {
        let location = K::Kept::from(location);
        Self { meeting: Rendezvous::new(), waker: UnsafeCell::new(None), location }
    }

    /// That of a child.
    ///
    /// # Safety
    /// The child has a handle, is there for as long as the reference, and its pointer is one to all of it.
    #[inline]
    pub(super) unsafe fn of<'a>(child: NonNull<TaskHeader>) -> &'a Self {
        // SAFETY: the caller's; `Scope::start_with_handle` asserts that it lies there.
        unsafe { child.cast::<u8>().add(Self::AT).cast().as_ref() }
    }
}
