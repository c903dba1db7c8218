//! An operation without children that does one thing when it starts. Senders that are built on it need no
//! `unsafe`.

#![allow(unsafe_code)]

use core::cell::Cell;
use core::fmt;
use core::marker::PhantomPinned;
use core::pin::Pin;

use convoke_core::raw::Operation;

/// The action of a [`Leaf`] at its start: it completes its receiver, at once or by passing it on.
pub trait Action: Send {
    /// Performs the action.
    fn act(self);
}

/// The operation that performs one [`Action`] when it starts.
pub struct Leaf<A> {
    action: Cell<Option<A>>,
    _pinned: PhantomPinned,
}

impl<A: Action> Leaf<A> {
    /// Creates an operation that performs `action` when it starts.
    #[inline]
    pub const fn new(action: A) -> Self {
        Self { action: Cell::new(Some(action)), _pinned: PhantomPinned }
    }
}

impl<A: Action> Operation for Leaf<A> {
    #[inline]
    unsafe fn start(self: Pin<&mut Self>) {
        // Moved out before it runs: it may free the operation.
        if let Some(action) = self.as_ref().get_ref().action.take() {
            action.act();
        }
    }
}

impl<A> fmt::Debug for Leaf<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Leaf").finish_non_exhaustive()
    }
}
