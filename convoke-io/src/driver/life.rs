//! The life cycle of an I/O operation: one atomic byte with three stages. No unsafe code; the rules that
//! depend on it are in `operation.rs`.
//!
//! ```text
//!          submit                finish
//!   Idle ─────────► Submitted ─────────► Finished
//!    ▲                  │ release           │ take
//!    └──────────────────┴───────────────────┘
//! ```
//!
//! The owner (a future or an operation state) calls `submit` and `take`. The holder of the `InFlight` calls
//! `finish` or `release`.

use convoke_core::raw::sync::atomic::{AtomicU8, Ordering};

/// A stage in the life of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum LifeStage {
    /// Not submitted. The operation belongs to its owner.
    Idle = 0,
    /// Submitted. Request, buffers and link belong to the holder of the [`InFlight`](super::InFlight), and to
    /// it only.
    Submitted = 1,
    /// Finished. The operation belongs to its owner again and holds a result.
    Finished = 2,
}

pub(super) struct Life(AtomicU8);

impl Life {
    pub(super) fn new() -> Self {
        Self(AtomicU8::new(LifeStage::Idle as u8))
    }

    /// Returns the stage. Acquire: a thread that sees `Finished`, or `Idle` after a release, sees all writes
    /// to the operation.
    #[inline]
    pub(super) fn stage(&self) -> LifeStage {
        match self.0.load(Ordering::Acquire) {
            0 => LifeStage::Idle,
            1 => LifeStage::Submitted,
            _ => LifeStage::Finished,
        }
    }

    /// Idle to Submitted. Called by the owner.
    #[inline]
    pub(super) fn submit(&self) {
        debug_assert_eq!(self.stage(), LifeStage::Idle);
        self.0.store(LifeStage::Submitted as u8, Ordering::Release);
    }

    /// Submitted to Finished. Called by the holder of the `InFlight`, which gives it up.
    #[inline]
    pub(super) fn finish(&self) {
        debug_assert_eq!(self.stage(), LifeStage::Submitted);
        self.0.store(LifeStage::Finished as u8, Ordering::Release);
    }

    /// Submitted to Idle: nothing has happened. Called by the holder of the `InFlight`, which gives it up.
    #[inline]
    pub(super) fn release(&self) {
        debug_assert_eq!(self.stage(), LifeStage::Submitted);
        self.0.store(LifeStage::Idle as u8, Ordering::Release);
    }

    /// Finished to Idle. Called by the owner.
    #[inline]
    pub(super) fn take(&self) {
        debug_assert_eq!(self.stage(), LifeStage::Finished);
        self.0.store(LifeStage::Idle as u8, Ordering::Relaxed);
    }
}
