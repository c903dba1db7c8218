//! How an [`EnvAbove`] is filled: by asking a receiver, which the type itself does not know.

#![allow(unsafe_code)]

use core::ptr::NonNull;

use crate::Receiver;
use crate::erased::EnvAbove;

impl EnvAbove {
    /// Asks the receiver for its environment and stores the answer.
    ///
    /// # Safety
    /// No other thread uses this yet. The receiver is not moved or touched as long as [`get`](EnvAbove::get)
    /// is called.
    #[inline]
    pub unsafe fn ask<V, E, R: Receiver<V, E>>(&self, receiver: &R) {
        self.env.set(Some(NonNull::from(receiver.env())));
        self.enclosing.set(receiver.enclosing());
    }
}
