//! The reason of a stop that was requested of one task alone, through its handle. Its siblings may have another
//! one, or none, so that their parent does not know it. A word behind the header, where the task finds it
//! without knowing the type of its ending.

#![allow(unsafe_code)]

use core::ptr::NonNull;

use convoke_core::StopReason;
use convoke_core::raw::ReasonCode;
use convoke_core::raw::sync::atomic::{AtomicU32, Ordering};

use super::header::TaskHeader;

/// The reason of the first stop request of a task with a handle. Set once, by any thread that has a reference
/// to the task. It comes first in the ending of such a task, which lies behind the header.
#[derive(Debug)]
pub(crate) struct AskedFor(AtomicU32);

impl AskedFor {
    /// The distance from the start of the task, in bytes.
    pub(super) const OFFSET: usize = size_of::<TaskHeader>().next_multiple_of(align_of::<Self>());

    /// Creates a word without a reason.
    #[inline]
    pub(super) fn new() -> Self {
        Self(AtomicU32::new(0))
    }

    /// Returns the address of the word of a task that has one.
    #[inline]
    pub(super) fn behind(task: NonNull<TaskHeader>) -> NonNull<Self> {
        task.map_addr(|address| address.saturating_add(Self::OFFSET)).cast()
    }

    /// Stores the reason, if it is the first.
    pub(super) fn set(&self, reason: StopReason) {
        let code = ReasonCode::of(reason).number();
        // Relaxed: the number is all there is to see, and the state orders it before the request.
        let _ = self.0.compare_exchange(0, code, Ordering::Relaxed, Ordering::Relaxed);
    }

    /// Returns the reason, if there is one.
    #[inline]
    pub(super) fn code(&self) -> Option<ReasonCode> {
        ReasonCode::from_number(self.0.load(Ordering::Relaxed))
    }
}
