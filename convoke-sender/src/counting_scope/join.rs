//! `join`: closes a scope when it starts, and waits for all work in the scope.

#![allow(unsafe_code)]

use core::fmt;
use core::marker::PhantomPinned;
use core::pin::Pin;
use core::ptr::NonNull;

use crate::{Completes, Receiver, Sender};
use convoke_core::raw::Operation;
use convoke_core::raw::sync::Arc;
use convoke_core::raw::sync::UnsafeCell;
use convoke_core::raw::{Call, Header, Runnable, WorkKind};
use convoke_core::{Never, Outcome};

use super::shared::Shared;
use super::state::Waiter;

/// The sender of [`join`](super::CountingScope::join).
#[must_use = "a scope is closed and waited for when its join is started, not before"]
pub struct Join {
    shared: Arc<Shared>,
}

impl Join {
    pub(super) fn new(shared: Arc<Shared>) -> Self {
        Self { shared }
    }
}

// SAFETY: rules 1 and 2 of `Sender`: the only runnable completes the receiver, last. Rule 3: it is run in
// `start`, or posted to the executor of the environment.
#[diagnostic::do_not_recommend]
unsafe impl Sender for Join {
    type Value = ();
    type Error = Never;
    const COMPLETES: Completes = Completes::Here;
    type Operation<R: Receiver<(), Never>> = JoinOperation<R>;

    fn connect<R: Receiver<(), Never>>(self, receiver: R) -> JoinOperation<R> {
        JoinOperation {
            header: Header::new(const { &WorkKind::new(JoinOperation::<R>::call) }),
            parts: UnsafeCell::new(Some((self.shared, receiver))),
            _pinned: PhantomPinned,
        }
    }
}

crate::awaitable!([] Join);

/// The operation of [`Join`]: it contains the header that the last work to leave posts.
///
/// 1. `start` is the only user until it has given the runnable away, then the holder of the runnable is.
#[repr(C)]
pub struct JoinOperation<R> {
    // First, so that a pointer to it is a pointer to the operation.
    header: Header,
    /// Rule 1.
    parts: UnsafeCell<Option<(Arc<Shared>, R)>>,
    _pinned: PhantomPinned,
}

// SAFETY: rule 1: one thread at a time uses the parts.
unsafe impl<R: Send> Sync for JoinOperation<R> {}

impl<R: Receiver<(), Never>> JoinOperation<R> {
    /// Completes the receiver.
    ///
    /// # Safety
    /// Called once, with the header of a live operation, by its runnable.
    unsafe fn call(header: NonNull<Header>, call: Call) {
        // SAFETY: the header is the first field of the operation (`repr(C)`), which is alive until its
        // receiver is completed. Rule 1: the parts belong to the runnable.
        let parts = unsafe { (*(*header.cast::<Self>().as_ptr()).parts.get()).take() };
        let Some((shared, receiver)) = parts else { return };
        let outcome = match shared.state().panic_for_join() {
            Some(panic) => Outcome::Panicked(panic),
            None if call == Call::Stop => Outcome::Stopped,
            None => Outcome::Value(()),
        };
        // Before the completion: the receiver may rely on it that nothing of the scope is left.
        drop(shared);
        receiver.complete(outcome);
    }
}

impl<R: Receiver<(), Never>> Operation for JoinOperation<R> {
    unsafe fn start(self: Pin<&mut Self>) {
        // SAFETY: nothing structurally pinned is moved.
        let this = NonNull::from(unsafe { self.get_unchecked_mut() });
        // SAFETY: rule 1: the parts are ours until the runnable is in the state; what is used afterwards is
        // our own clone. The operation is pinned until the receiver is completed, which the only runnable
        // does.
        let (shared, waiter) = unsafe {
            let Some((shared, receiver)) = &*this.as_ref().parts.get_const() else { return };
            let executor = receiver.env().executor().clone();
            let runnable = Runnable::new(this.cast());
            (shared.clone(), Waiter { executor, runnable })
        };
        let after = shared.state().join(waiter);
        drop(shared);
        after.resume_if_over();
    }
}

impl fmt::Debug for Join {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Join")
    }
}

impl<R> fmt::Debug for JoinOperation<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JoinOperation")
    }
}
