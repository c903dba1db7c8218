//! The memory that a child shares with its handle. It lies in the child, right behind the header, where the
//! handle finds it without knowing the type of the child's future.
//!
//! Rule 1: `rendezvous` says which of the two may touch the waker and the outcome. Rule 2: `location` does
//! not change.

#![allow(unsafe_code)]

use core::panic::Location;
use core::ptr::NonNull;
use core::task::Waker;

use convoke_core::raw::Rendezvous;
use convoke_core::raw::sync::UnsafeCell;

use super::handle::Kind;
use crate::task::TaskHeader;

/// The shared part of a child with a handle: the first field of its ending.
#[repr(C)]
pub(super) struct HandleRendezvous<K: Kind> {
    pub(super) rendezvous: Rendezvous,
    /// The waker of the task that awaits the handle: rule 1.
    pub(super) waker: UnsafeCell<Option<Waker>>,
    /// The spawn site, for a handle that cannot tell if the child has ended: the header has it only until then.
    pub(super) location: K::Location,
}

impl<K: Kind> HandleRendezvous<K> {
    /// The distance from the start of the child, in bytes.
    pub(super) const OFFSET: usize = size_of::<TaskHeader>().next_multiple_of(align_of::<Self>());

    #[inline]
    pub(super) fn new(location: &'static Location<'static>) -> Self {
        let location = K::Location::from(location);
        Self { rendezvous: Rendezvous::new(), waker: UnsafeCell::new(None), location }
    }

    /// Returns the shared part of a child.
    ///
    /// # Safety
    /// The child has a handle of kind `K`, and lives as long as the reference. The pointer may be used for
    /// the whole child, not just its header.
    #[inline]
    pub(super) unsafe fn of<'a>(child: NonNull<TaskHeader>) -> &'a Self {
        // SAFETY: `Scope::start_with_handle` asserts that the shared part of such a child is at this offset;
        // the caller says that the child is alive.
        unsafe { child.cast::<u8>().add(Self::OFFSET).cast().as_ref() }
    }
}
