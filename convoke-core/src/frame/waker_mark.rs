//! The identity of a waker: tells, without storing a waker, whether the next poll brings another one.

use core::num::NonZeroUsize;
use core::ptr::NonNull;
/// The identity of a waker. Meaningless once that waker was dropped.

/// The identity of a waker. It says nothing once that waker is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
    /// Never null, so that an `Option` of a mark costs nothing.
    data: usize,
    /// Never null: so `Option` of a mark costs nothing.
    table: NonZeroUsize,
}
    /// Returns the identity of this waker. Clones have the same.
impl WakerMark {
    /// That of this waker; clones have the same.
    #[inline]
    pub fn of(waker: &Waker) -> Self {
        Self { data: waker.data().addr(), table: NonNull::from(waker.vtable()).addr() }
    }
}
