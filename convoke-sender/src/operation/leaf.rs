//! An operation without children that does one thing when it is started. With it, writing such a sender takes no
//! `unsafe`.

#![allow(unsafe_code)]

use core::fmt;
use core::marker::PhantomPinned;
use core::pin::Pin;

use convoke_core::raw::Operation;

/// What a [`Leaf`] does when it is started: it completes its receiver, now or by passing it on.
pub trait Action: Send {
    /// Does it.
    fn act(self);
}

/// The operation that does one [`Action`].
pub struct Leaf<A> {
    action: Option<A>,
    _pinned: PhantomPinned,
}

impl<A: Action> Leaf<A> {
    /// Will do this when it is started.
    #[inline]
    pub const fn new(action: A) -> Self {
        Self { action: Some(action), _pinned: PhantomPinned }
    }
}

impl<A: Action> Operation for Leaf<A> {
    #[inline]
    unsafe fn start(self: Pin<&mut Self>) {
        // SAFETY: the action is not structurally pinned: it is moved out before it acts, and may destroy us then.
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
