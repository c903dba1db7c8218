//! The environment of an operation's receiver, for children on several threads. A receiver is not `Sync`: it is asked
//! once, before there are children, and they read the answer.

use core::cell::Cell;
use core::fmt;
use core::ptr::NonNull;

use crate::{Env, Receiver};

/// The answer of a receiver to the question for its environment.
pub struct EnvAbove(Cell<Option<NonNull<Env>>>);

// SAFETY: an environment is `Sync`; the cell is written by `ask` alone, before anybody reads.
unsafe impl Send for EnvAbove {}
// SAFETY: as above.
unsafe impl Sync for EnvAbove {}

impl EnvAbove {
    /// Not asked for yet.
    #[inline]
    pub const fn new() -> Self {
        Self(Cell::new(None))
    }

    /// Asks the receiver.
    ///
    /// # Safety
    /// No other thread uses this yet. The receiver stays where it is, untouched, for as long as [`get`](EnvAbove::get)
    /// is called.
    #[inline]
    pub unsafe fn ask<V, E, R: Receiver<V, E>>(&self, receiver: &R) {
        self.0.set(Some(NonNull::from(receiver.env())));
    }

    /// The environment.
    ///
    /// # Safety
    /// After [`ask`](EnvAbove::ask), and as long as its receiver stays.
    #[inline]
    pub unsafe fn get(&self) -> &Env {
        // SAFETY: it was borrowed from the receiver, which is still in its place: the caller's promise.
        unsafe { self.0.get().expect("asked for before it is needed").as_ref() }
    }
}

impl Default for EnvAbove {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for EnvAbove {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EnvAbove").field("asked", &self.0.get().is_some()).finish()
    }
}
