//! What the children of an operation on several threads ask its receiver. A receiver is not `Sync`: it is asked once,
//! before there are children, and they read the answer.

#![allow(unsafe_code)]

use core::cell::Cell;
use core::fmt;
use core::ptr::NonNull;

use super::enclosing::Enclosing;
use crate::Receiver;
use convoke_core::Env;

/// The answer of a receiver to the question for its environment.
pub struct EnvAbove {
    env: Cell<Option<NonNull<Env>>>,
    enclosing: Cell<Option<Enclosing>>,
}

// SAFETY: an environment is `Sync`; the cells are written by `ask` alone, before anybody reads.
unsafe impl Send for EnvAbove {}
// SAFETY: as above.
unsafe impl Sync for EnvAbove {}

impl EnvAbove {
    /// Not asked for yet.
    #[inline]
    pub const fn new() -> Self {
        Self { env: Cell::new(None), enclosing: Cell::new(None) }
    }

    /// Asks the receiver.
    ///
    /// # Safety
    /// No other thread uses this yet. The receiver stays where it is, untouched, for as long as [`get`](EnvAbove::get)
    /// is called.
    #[inline]
    pub unsafe fn ask<V, E, R: Receiver<V, E>>(&self, receiver: &R) {
        self.env.set(Some(NonNull::from(receiver.env())));
        self.enclosing.set(receiver.enclosing());
    }

    /// The environment.
    ///
    /// # Safety
    /// After [`ask`](EnvAbove::ask), and as long as its receiver stays.
    #[inline]
    pub unsafe fn get(&self) -> &Env {
        // SAFETY: it was borrowed from the receiver, which is still in its place: the caller's promise.
        unsafe { self.env.get().expect("asked for before it is needed").as_ref() }
    }

    /// What the receiver said that the work is part of.
    ///
    /// # Safety
    /// After [`ask`](EnvAbove::ask).
    #[inline]
    pub(crate) unsafe fn enclosing(&self) -> Option<Enclosing> {
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
        f.debug_struct("EnvAbove").field("asked", &self.env.get().is_some()).finish()
    }
}
