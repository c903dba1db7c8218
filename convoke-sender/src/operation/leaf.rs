//! An operation without children that does one thing when it starts. Senders that are built on it need no
//! `unsafe`.

#![allow(unsafe_code)]

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
    action: Option<A>,
    _pinned: PhantomPinned,
}

impl<A: Action> Leaf<A> {
    /// Creates an operation that performs `action` when it starts.
    #[inline]
    pub const fn new(action: A) -> Self {
        Self { action: Some(action), _pinned: PhantomPinned }
    }
}

impl<A: Action> Operation for Leaf<A> {
    #[inline]
    unsafe fn start(self: Pin<&mut Self>) {
        // SAFETY: the action is not structurally pinned: it is moved out before it runs, and may then free
        // the operation.
        if let Some(action) = unsafe { self.get_unchecked_mut() }.action.take() {
            action.act();
        }
    }
}

impl<A> fmt::Debug for Leaf<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Leaf").field("started", &self.action.is_none()).finish()
    }
}
