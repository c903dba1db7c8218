//! The twin of `ledger` without the feature `diagnosis`: recording is never on.

use core::panic::Location;

use convoke_core::raw::WakerMark;

/// Returns false: recording is never on.
#[inline]
pub(crate) const fn is_on() -> bool {
    false
}

/// Returns false: recording is never on.
#[inline]
pub(crate) const fn notes_every_lock() -> bool {
    false
}

/// A request for permits. Nothing reads it.
#[allow(dead_code)]
#[derive(Clone, Copy)]
pub(crate) struct Asking {
    pub(crate) lock: usize,
    pub(crate) permits: usize,
    pub(crate) place: Option<&'static Location<'static>>,
    pub(crate) branch: Option<WakerMark>,
}

#[inline]
pub(crate) fn waits(_node: usize, _asking: Asking) {}

#[inline]
pub(crate) fn polled(_node: usize) {}

#[inline]
pub(crate) fn granted(_node: usize) -> Option<u64> {
    None
}

#[inline]
pub(crate) fn woken(_began: u64) {}

#[inline]
pub(crate) fn took_granted(_node: usize) {}

#[inline]
pub(crate) fn left(_node: usize) {}

#[inline]
pub(crate) fn took_at_once(_asking: Asking) {}

#[inline]
pub(crate) fn gave_back(_lock: usize, _permits: usize) {}

#[inline]
pub(crate) fn knows_holders(_lock: usize) -> bool {
    false
}

#[inline]
pub(crate) fn gone(_lock: usize) {}
