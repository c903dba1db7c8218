//! Whose waker it was: to tell, without keeping it, whether another one comes.

use core::task::Waker;

/// The identity of a waker. It says nothing once that waker is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WakerMark {
    data: usize,
    table: usize,
}

impl WakerMark {
    /// That of this waker; clones have the same.
    #[inline]
    pub fn of(waker: &Waker) -> Self {
        Self { data: waker.data().addr(), table: core::ptr::from_ref(waker.vtable()).addr() }
    }
}
