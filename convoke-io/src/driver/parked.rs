//! Operations that wait in a driver, in order, linked through themselves: parking one allocates nothing.

use core::fmt;
use core::ptr::{self, NonNull};

use super::{InFlight, IoOperation, OperationId};

/// A list of operations that wait. For readiness drivers there is one for each direction of a source. Dropping it finishes all
/// of them with an error.
pub struct Parked {
    first: *mut IoOperation,
}

// SAFETY: it owns what is in it, and that is `Send`.
unsafe impl Send for Parked {}
// SAFETY: by shared reference it can only be asked whether it is empty.
unsafe impl Sync for Parked {}

impl Parked {
    /// An empty list.
    pub const fn new() -> Self {
        Self { first: ptr::null_mut() }
    }

    /// Whether nobody waits.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.first.is_null()
    }

    /// Adds one behind all others.
    pub fn push(&mut self, operation: InFlight) {
        let operation = operation.into_raw();
        let mut end = &raw mut self.first;
        // SAFETY: the operations in the list are ours, and so are their links: rule 2 of the operation.
        unsafe {
            *operation.as_ref().next.get() = ptr::null_mut();
            while let Some(there) = NonNull::new(*end) {
                end = there.as_ref().next.get();
            }
            *end = operation.as_ptr();
        }
    }

    /// Takes the first.
    #[inline]
    pub fn pop(&mut self) -> Option<InFlight> {
        let first = NonNull::new(self.first)?;
        // SAFETY: as in `push`; the obligation goes to the caller.
        unsafe {
            self.first = *first.as_ref().next.get();
            Some(InFlight::new(first))
        }
    }

    /// Puts one back in front of all others.
    pub fn put_back(&mut self, operation: InFlight) {
        let operation = operation.into_raw();
        // SAFETY: as in `push`.
        unsafe { *operation.as_ref().next.get() = self.first };
        self.first = operation.as_ptr();
    }

    /// Takes this one, if it is there.
    pub fn remove(&mut self, id: OperationId) -> Option<InFlight> {
        let mut place = &raw mut self.first;
        // SAFETY: as in `push`; the obligation goes to the caller.
        unsafe {
            while let Some(there) = NonNull::new(*place) {
                if OperationId::of(there) == id {
                    *place = *there.as_ref().next.get();
                    return Some(InFlight::new(there));
                }
                place = there.as_ref().next.get();
            }
        }
        None
    }
}

impl Drop for Parked {
    fn drop(&mut self) {
        while let Some(operation) = self.pop() {
            drop(operation);
        }
    }
}

impl Default for Parked {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Parked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Parked").field("empty", &self.is_empty()).finish()
    }
}
