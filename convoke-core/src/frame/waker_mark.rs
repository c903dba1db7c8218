//! Whose waker it was: to tell, without keeping it, whether another one comes.

use core::num::NonZeroUsize;
use core::ptr::NonNull;
use core::task::Waker;

/// The identity of a waker. It says nothing once that waker is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WakerMark {
    data: usize,
    /// Never null: so `Option` of a mark costs nothing.
    table: NonZeroUsize,
}

impl WakerMark {
    /// That of this waker; clones have the same.
    #[inline]
    pub fn of(waker: &Waker) -> Self {
        Self { data: waker.data().addr(), table: NonNull::from(waker.vtable()).addr() }
    }
}
