//! The life of an I/O operation: one word, three stages, and who may move it on.
//!
//! ```text
//!          submit                finish
//!   Idle ─────────► Submitted ─────────► Finished
//!    ▲                  │ let go            │ take
//!    └──────────────────┴───────────────────┘
//! ```
//!
//! Its owner (a future, an operation state) submits and takes; whoever holds its `InFlight` finishes it or lets it go.

use convoke_core::raw::sync::atomic::{AtomicU8, Ordering};

/// Where an operation is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum LifeStage {
    /// Its owner's alone.
    Idle = 0,
    /// The driver's: request, buffers and links are touched by whoever holds the [`InFlight`](super::InFlight), by nobody else.
    Submitted = 1,
    /// Its owner's again, with a result in it.
    Finished = 2,
}

pub(super) struct Life(AtomicU8);

impl Life {
    pub(super) fn new() -> Self {
        Self(AtomicU8::new(LifeStage::Idle as u8))
    }

    /// Acquire: who sees that it is finished, or let go, sees all that was done to it.
    #[inline]
    pub(super) fn stage(&self) -> LifeStage {
        match self.0.load(Ordering::Acquire) {
            0 => LifeStage::Idle,
            1 => LifeStage::Submitted,
            _ => LifeStage::Finished,
        }
    }

    /// By the owner, of what is idle.
    #[inline]
    pub(super) fn submit(&self) {
        debug_assert_eq!(self.stage(), LifeStage::Idle);
        self.0.store(LifeStage::Submitted as u8, Ordering::Release);
    }

    /// By whoever holds the `InFlight`, who gives it up.
    #[inline]
    pub(super) fn finish(&self) {
        debug_assert_eq!(self.stage(), LifeStage::Submitted);
        self.0.store(LifeStage::Finished as u8, Ordering::Release);
    }

    /// By whoever holds the `InFlight`, who gives it up: nothing has happened.
    #[inline]
    pub(super) fn let_go(&self) {
        debug_assert_eq!(self.stage(), LifeStage::Submitted);
        self.0.store(LifeStage::Idle as u8, Ordering::Release);
    }

    /// By the owner, of what is finished.
    #[inline]
    pub(super) fn take(&self) {
        debug_assert_eq!(self.stage(), LifeStage::Finished);
        self.0.store(LifeStage::Idle as u8, Ordering::Relaxed);
    }
}
