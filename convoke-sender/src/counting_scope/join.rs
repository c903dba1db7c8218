//! `join`: closes a scope when it is started, and waits for all that is in it.

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

/// See [`join`](super::CountingScope::join).
#[must_use = "a scope is closed and waited for when its join is started, not before"]
pub struct Join {
    shared: Arc<Shared>,
}

impl Join {
    pub(super) fn new(shared: Arc<Shared>) -> Self {
        Self { shared }
    }
}

// SAFETY: whoever holds the runnable completes the receiver, as the last thing he does with the operation. It is run in
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

/// The operation of [`Join`]: what the last to leave posts lies in here.
#[repr(C)]
pub struct JoinOperation<R> {
    // First, so that a pointer to it is a pointer to the operation.
    header: Header,
    /// Touched by `start` until it has given the runnable away, then by who holds that.
    parts: UnsafeCell<Option<(Arc<Shared>, R)>>,
    _pinned: PhantomPinned,
}

// SAFETY: one at a time touches the parts, see there.
unsafe impl<R: Send> Sync for JoinOperation<R> {}

impl<R: Receiver<(), Never>> JoinOperation<R> {
    /// # Safety
    /// Called once, with the header of a live operation, by its runnable.
    unsafe fn call(header: NonNull<Header>, call: Call) {
        // SAFETY: the header is the first field of the operation (`repr(C)`), which is alive until we complete its
        // receiver, and the parts are ours.
        let parts = unsafe { (*(*header.cast::<Self>().as_ptr()).parts.get()).take() };
        let Some((shared, receiver)) = parts else { return };
        let outcome = match shared.state().panic_for_join() {
            Some(panic) => Outcome::Panicked(panic),
            None if call == Call::Stop => Outcome::Stopped,
            None => Outcome::Value(()),
        };
        // Before the receiver is told, who may count on it that nothing of the scope is left.
        drop(shared);
        receiver.complete(outcome);
    }
}

impl<R: Receiver<(), Never>> Operation for JoinOperation<R> {
    unsafe fn start(self: Pin<&mut Self>) {
        // SAFETY: nothing is moved out of its place.
        let this = NonNull::from(unsafe { self.get_unchecked_mut() });
        // SAFETY: the parts are ours until the runnable is in the state; what is needed afterwards is our own by then.
        // We are pinned until the receiver was completed, which the runnable does; there is no other.
        let (shared, waiter) = unsafe {
            let Some((shared, receiver)) = &*this.as_ref().parts.get_const() else { return };
            let executor = receiver.env().executor().clone();
            let runnable = Runnable::new(this.cast());
            (shared.clone(), Waiter { executor, runnable })
        };
        let after = shared.state().join(waiter);
        drop(shared);
        after.go_on_if_over();
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
