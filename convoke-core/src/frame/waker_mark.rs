//! The identity of a waker: tells, without storing a waker, whether the next poll brings another one.

use core::num::NonZeroUsize;
use core::ptr::NonNull;
use core::task::Waker;

/// The identity of a waker. Meaningless once that waker was dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WakerMark {
    data: usize,
    /// Never null, so that an `Option` of a mark costs nothing.
    table: NonZeroUsize,
}

impl WakerMark {
    /// Returns the identity of this waker. Clones have the same.
    #[inline]
    pub fn of(waker: &Waker) -> Self {
        Self { data: waker.data().addr(), table: NonNull::from(waker.vtable()).addr() }
    }
}
