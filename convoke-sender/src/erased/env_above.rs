//! The environment of a receiver, for children on several threads. A receiver is not `Sync`: it is asked
//! once (`operation::ask_receiver`), before the children start, and they read the answer.

#![allow(unsafe_code)]

use core::cell::Cell;
use core::fmt;
use core::ptr::NonNull;

use super::enclosing::Enclosing;
use convoke_core::Env;

/// A pointer to the environment of a receiver, and to the boxed operation around it.
pub struct EnvAbove {
    /// Written by `ask` alone, as the next.
    pub(crate) env: Cell<Option<NonNull<Env>>>,
    pub(crate) enclosing: Cell<Option<Enclosing>>,
}

// SAFETY: an environment is `Sync`, and it may be read from any thread. The cells are written only by `ask`,
// before other threads use this.
unsafe impl Send for EnvAbove {}
// SAFETY: the cells are written only by `ask`, by whose contract no other thread uses this yet; afterwards
// they are read-only.
unsafe impl Sync for EnvAbove {}

impl EnvAbove {
    /// Creates one that has not asked its receiver yet.
    #[inline]
    pub const fn new() -> Self {
        Self { env: Cell::new(None), enclosing: Cell::new(None) }
    }

    /// Returns true if a receiver was asked.
    #[inline]
    pub fn has_asked(&self) -> bool {
        self.env.get().is_some()
    }

    /// Returns the environment.
    ///
    /// # Safety
    /// Called after [`ask`](EnvAbove::ask), while the receiver that was asked has not moved.
    #[inline]
    pub unsafe fn get(&self) -> &Env {
        // SAFETY: `ask` borrowed it from the receiver, which has not moved since: both contracts say so.
        unsafe { self.env.get().expect("`EnvAbove::ask` is called before `get`").as_ref() }
    }

    /// Returns the boxed operation that the work is part of, as the receiver answered.
    #[inline]
    pub(crate) fn enclosing(&self) -> Option<Enclosing> {
        self.enclosing.get()
    }
}

impl Default for EnvAbove {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for EnvAbove {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EnvAbove").field("asked", &self.has_asked()).finish()
    }
}
