//! Being told of a stop request. The callback's node lives inside the callback: registering allocates nothing.

#![allow(unsafe_code)]

use core::cell::{self, Cell};
use core::fmt;
use core::marker::PhantomPinned;
use core::pin::Pin;
use core::ptr::NonNull;

use super::state::{Node, Onward, StopState};
use super::{StopReason, StopRef, StopToken};
use crate::sync::UnsafeCell;

/// Runs a closure when a stop is requested: once, on the thread that makes the request, or at once if it has
/// been made before [`register`](StopCallback::register).
///
/// Dropping it takes it out again. If the closure runs on another thread just then, the drop waits for it;
/// a closure that drops its own callback is fine too.
///
/// The closure is `'static`: a boxed callback may be leaked, and then it stays registered for as long as the source
/// lives, longer than anything it could have borrowed.
///
/// ```
/// use std::pin::pin;
/// use std::sync::Arc;
/// use std::sync::atomic::{AtomicBool, Ordering};
/// use convoke::{StopReason, StopSource};
///
/// let source = StopSource::new();
/// let token = source.token();
/// let told = Arc::new(AtomicBool::new(false));
/// let tell = told.clone();
/// let callback = pin!(token.as_ref().on_stop(move |reason| {
///     assert_eq!(reason, StopReason::Requested);
///     tell.store(true, Ordering::Relaxed);
/// }));
/// callback.as_ref().register();
/// source.request_stop(StopReason::Requested);
/// assert!(told.load(Ordering::Relaxed));
/// ```
#[must_use = "a callback does nothing until it is pinned and registered"]
pub struct StopCallback<'t, F: FnOnce(StopReason) + Send + 'static> {
    raw: RawCallback<Call<F>>,
    state: Option<&'t StopState>,
}

impl<'t, F: FnOnce(StopReason) + Send + 'static> StopCallback<'t, F> {
    /// A callback for a borrowed token; also to be had as [`StopRef::on_stop`].
    #[inline]
    pub fn new(token: StopRef<'t>, f: F) -> Self {
        Self { raw: RawCallback::new(Call(f)), state: token.state() }
    }

    /// Registers it. If a stop was requested already the closure runs now. A second call does nothing.
    #[inline]
    pub fn register(self: Pin<&Self>) {
        let this = self.get_ref();
        if !this.raw.is_registered() {
            // SAFETY: we are pinned, so the node stays until it is dropped; the state is borrowed for longer than we
            // live, and the closure borrows nothing.
            unsafe { this.raw.register_with(this.state) };
        }
    }
}

/// Does nothing. It tells the compiler that dropping a callback uses what `'t` borrows: dropping `raw` takes it out of
/// the list in `state`, but the type of `raw` does not say so. So a token is not dropped before its callbacks.
impl<F: FnOnce(StopReason) + Send + 'static> Drop for StopCallback<'_, F> {
    #[inline]
    fn drop(&mut self) {}
}

impl<F: FnOnce(StopReason) + Send + 'static> fmt::Debug for StopCallback<'_, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StopCallback").field("registered", &self.raw.is_registered()).finish_non_exhaustive()
    }
}

/// A [`StopCallback`] that keeps its token, made by [`StopToken::on_stop`].
#[must_use = "a callback does nothing until it is pinned and registered"]
pub struct OwnedStopCallback<F: FnOnce(StopReason) + Send + 'static> {
    // Before the token: fields are dropped in order, and dropping this one takes it out of the token's list.
    raw: RawCallback<Call<F>>,
    token: StopToken,
}

impl<F: FnOnce(StopReason) + Send + 'static> OwnedStopCallback<F> {
    pub(super) fn new(token: StopToken, f: F) -> Self {
        Self { raw: RawCallback::new(Call(f)), token }
    }

    /// Registers it. If a stop was requested already the closure runs now. A second call does nothing.
    pub fn register(self: Pin<&Self>) {
        let this = self.get_ref();
        if !this.raw.is_registered() {
            // SAFETY: we are pinned, so the node stays until it is dropped; the token is dropped after it, and the
            // closure borrows nothing.
            unsafe { this.raw.register(this.token.as_ref()) };
        }
    }
}

impl<F: FnOnce(StopReason) + Send + 'static> fmt::Debug for OwnedStopCallback<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OwnedStopCallback")
            .field("registered", &self.raw.is_registered())
            .finish_non_exhaustive()
    }
}

/// What a [`RawCallback`] runs. A trait of its own and not `FnOnce`, so that operations can name the type of
/// what they register.
pub trait OnStop: Send {
    /// The stop was requested.
    fn on_stop(self, reason: StopReason);

    /// As [`on_stop`](OnStop::on_stop), for a callback whose work is to pass the request on to another source: it names
    /// that source instead, and the loop that runs the callbacks goes on there. So a request does not recurse,
    /// however long the chain of sources is.
    #[doc(hidden)]
    #[inline]
    fn pass_on(self, reason: StopReason) -> Option<Onward>
    where
        Self: Sized,
    {
        self.on_stop(reason);
        None
    }
}

struct Call<F>(F);

impl<F: FnOnce(StopReason) + Send> OnStop for Call<F> {
    fn on_stop(self, reason: StopReason) {
        (self.0)(reason);
    }
}

/// A callback without a lifetime, for operations: it trusts its owner that the token's source outlives it.
pub struct RawCallback<C> {
    /// Plain, as pointers lead to it; the lock of the state is what guards it.
    node: cell::UnsafeCell<Node>,
    /// Taken by whoever runs it; the state sees to it that this is one thread.
    call: UnsafeCell<Option<C>>,
    /// The state we are registered with, until we have been taken out. Only the owner looks at it.
    state: Cell<Option<NonNull<StopState>>>,
    _pinned: PhantomPinned,
}

// Not `Sync`: `state` is for the owner alone, and `is_registered` is safe to call.
// SAFETY: the node is guarded by the lock of the state (its rule 1), `call` is taken by the one who runs it, and
// `state` is touched by the owner alone, in `register` and `remove`, which ask for it in their contracts.
unsafe impl<C: Send> Send for RawCallback<C> {}

impl<C: OnStop> RawCallback<C> {
    /// A callback that is not registered yet.
    #[inline]
    pub fn new(call: C) -> Self {
        Self {
            node: cell::UnsafeCell::new(Node::new(Self::invoke)),
            call: UnsafeCell::new(Some(call)),
            state: Cell::new(None),
            _pinned: PhantomPinned,
        }
    }

    /// Registers with the token's source, or runs it at once if a stop was requested already.
    ///
    /// # Safety
    /// It does not move from here on; the source behind `token`, and whatever the call borrows, live until this is
    /// removed or dropped; called once, by the owner.
    #[inline]
    pub unsafe fn register(&self, token: StopRef<'_>) {
        // SAFETY: the caller's.
        unsafe { self.register_with(token.state()) };
    }

    /// # Safety
    /// As for `register`.
    #[inline]
    unsafe fn register_with(&self, state: Option<&StopState>) {
        let Some(state) = state else { return };
        self.state.set(Some(NonNull::from(state)));
        // SAFETY: the caller promised that we stay here, and that this is the first registration.
        if let Err(reason) = unsafe { state.insert(self.node()) } {
            self.state.set(None);
            // SAFETY: the node is in no list, so nobody but us runs it.
            if let Some(call) = self.call.with_mut(|call| unsafe { (*call).take() }) {
                call.on_stop(reason);
            }
        }
    }

    /// # Safety
    /// Called once, by the state, with the node of a live `RawCallback<C>`.
    unsafe fn invoke(node: NonNull<Node>, reason: StopReason) -> Option<Onward> {
        // The node is the first field that the pointer was made from, but not at a known offset: go by `offset_of`.
        let this = node.as_ptr().wrapping_byte_sub(core::mem::offset_of!(Self, node)).cast::<Self>();
        // SAFETY: the node was made by `self.node()`, whose provenance is all of `Self`; we are the one who runs
        // it (rule 3 of the state), so `call` is ours. It is moved out: it may destroy us while it runs.
        let call = unsafe { (*this).call.with_mut(|call| (*call).take()) };
        call.and_then(|call| call.pass_on(reason))
    }
}

impl<C> RawCallback<C> {
    /// Whether it has been registered with a source that had not stopped yet, and not removed since.
    #[inline]
    pub fn is_registered(&self) -> bool {
        self.state.get().is_some()
    }

    /// Takes it out. Afterwards it will not run, and does not run on another thread.
    ///
    /// # Safety
    /// Called by the owner, not while another thread is in `register`.
    #[inline]
    pub unsafe fn remove(&self) {
        if let Some(state) = self.state.take() {
            // SAFETY: whoever registered us promised that the state lives until now, and `take` makes this the
            // only removal.
            unsafe { state.as_ref().remove(self.node()) };
        }
    }

    fn node(&self) -> NonNull<Node> {
        // From `self` and not from the field, so that the pointer may be taken back to all of `Self`.
        let start = NonNull::from(self).cast::<u8>();
        // SAFETY: the offset is that of a field of `Self`.
        unsafe { start.add(core::mem::offset_of!(Self, node)).cast() }
    }
}

impl<C> Drop for RawCallback<C> {
    #[inline]
    fn drop(&mut self) {
        // Not `remove`, which would note down for nobody that we are out.
        if let Some(state) = self.state.get() {
            // SAFETY: whoever registered us promised that the state lives until now; nobody else refers to us when
            // we are dropped, except the state, and that is what we end here.
            unsafe { state.as_ref().remove(self.node()) };
        }
        // For the models: from here on nobody else is at the closure.
        self.call.with_mut(|_| ());
    }
}

impl<C> fmt::Debug for RawCallback<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RawCallback").field("registered", &self.is_registered()).finish_non_exhaustive()
    }
}
