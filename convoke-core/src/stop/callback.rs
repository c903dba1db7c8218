//! Code that runs when a stop is requested. The list node lies inside the callback: registering allocates
//! nothing.

#![allow(unsafe_code)]

use core::cell::{self, Cell};
use core::fmt;
use core::marker::PhantomPinned;
use core::pin::Pin;
use core::ptr::NonNull;

use super::state::{Node, Onward, StopState};
use super::{StopReason, StopRef, StopToken};
use crate::sync::UnsafeCell;

/// A closure that runs when a stop is requested: once, on the thread that makes the request. If the request
/// was made before [`register`](StopCallback::register), it runs there at once.
///
/// Dropping the callback removes it. If the closure runs on another thread at that moment, the drop waits for
/// it. A closure may drop its own callback.
///
/// The closure is `'static`: a boxed callback may be leaked, and then stays registered for as long as the
/// source lives, which may be longer than anything the closure could borrow.
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
    /// Creates a callback for a borrowed token, as [`StopRef::on_stop`] does.
    #[inline]
    pub fn new(token: StopRef<'t>, f: F) -> Self {
        Self { raw: RawCallback::new(Call(f)), state: token.state() }
    }

    /// Registers the callback, or runs the closure now if a stop was requested already. A second call does
    /// nothing.
    #[inline]
    pub fn register(self: Pin<&Self>) {
        let this = self.get_ref();
        if !this.raw.is_registered() {
            // SAFETY: rule 1 of `RawCallback`: `self` is pinned, so the node does not move until it is
            // dropped, and dropping it removes it. Rule 2: `'t` borrows the state for longer than `self`
            // lives, and `F` is `'static`. Rule 3: `is_registered` was false.
            unsafe { this.raw.register_with(this.state) };
        }
    }
}

/// Does nothing. It tells the compiler that dropping a callback uses what `'t` borrows: dropping `raw`
/// removes it from the list in `state`, which the type of `raw` does not show. So a token cannot be dropped
/// before its callbacks.
impl<F: FnOnce(StopReason) + Send + 'static> Drop for StopCallback<'_, F> {
    #[inline]
    fn drop(&mut self) {}
}

impl<F: FnOnce(StopReason) + Send + 'static> fmt::Debug for StopCallback<'_, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StopCallback").field("registered", &self.raw.is_registered()).finish_non_exhaustive()
    }
}

/// A [`StopCallback`] that owns its token, created by [`StopToken::on_stop`].
#[must_use = "a callback does nothing until it is pinned and registered"]
pub struct OwnedStopCallback<F: FnOnce(StopReason) + Send + 'static> {
    // Before the token: fields are dropped in order, and dropping this one removes it from the token's list.
    raw: RawCallback<Call<F>>,
    token: StopToken,
}

impl<F: FnOnce(StopReason) + Send + 'static> OwnedStopCallback<F> {
    pub(super) fn new(token: StopToken, f: F) -> Self {
        Self { raw: RawCallback::new(Call(f)), token }
    }

    /// Registers the callback, or runs the closure now if a stop was requested already. A second call does
    /// nothing.
    pub fn register(self: Pin<&Self>) {
        let this = self.get_ref();
        if !this.raw.is_registered() {
            // SAFETY: rule 1 of `RawCallback`: `self` is pinned, so the node does not move until it is
            // dropped, and dropping it removes it. Rule 2: `token` keeps the source alive and is dropped
            // after `raw`, and `F` is `'static`. Rule 3: `is_registered` was false.
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

/// The code that a [`RawCallback`] runs. A trait of its own instead of `FnOnce`, so that operations can name
/// the type that they register.
pub trait OnStop: Send {
    /// Runs when the stop is requested.
    fn on_stop(self, reason: StopReason);

    /// Returns the source that this callback passes the request on to, instead of calling it. The loop that
    /// runs the callbacks goes on there, so that a request does not recurse, however long the chain of
    /// sources is. The default calls [`on_stop`](OnStop::on_stop).
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

/// A callback without a lifetime, for operations. Rules for its owner:
/// 1. It does not move from `register` on, until it is removed or dropped.
/// 2. The source, and what the call borrows, live until it is removed or dropped.
/// 3. `register` is not called while it is registered, and by the owner alone, as is `remove`.
#[repr(C)]
pub struct RawCallback<C> {
    // Rules of the fields:
    // 4. `node` belongs to the state from `register` on: rule 1 of `StopState`.
    // 5. `call` belongs to the thread that runs it. The state lets one thread run it (rule 3 of `StopState`);
    //    if the callback was not inserted, that is the thread in `register`.
    // 6. `state` belongs to the owner. It is set while the node is inserted.
    // 7. `node` is the first field (`repr(C)`), so that its address is that of the whole.
    /// Not a cell of a model: the list holds pointers to it, and the lock of the state guards it.
    node: cell::UnsafeCell<Node>,
    call: UnsafeCell<Option<C>>,
    /// The state that this is registered with, until it is removed.
    state: Cell<Option<NonNull<StopState>>>,
    _pinned: PhantomPinned,
}

// Not `Sync`: `is_registered` is safe to call and reads `state`, which rule 6 leaves to the owner.
// SAFETY: rules 4 to 6 say which thread uses which field: the node is guarded by the state's lock, `call` is
// `Send`, and `state` moves with the owner.
unsafe impl<C: Send> Send for RawCallback<C> {}

impl<C: OnStop> RawCallback<C> {
    /// Creates a callback that is not registered.
    #[inline]
    pub fn new(call: C) -> Self {
        Self {
            node: cell::UnsafeCell::new(Node::new(Self::invoke)),
            call: UnsafeCell::new(Some(call)),
            state: Cell::new(None),
            _pinned: PhantomPinned,
        }
    }

    /// Registers the callback with the token's source, or runs it at once if a stop was requested already.
    ///
    /// # Safety
    /// The callback does not move from here on. The source behind `token`, and what the call borrows, live
    /// until the callback is removed or dropped. Called by the owner, and not while it is registered.
    #[inline]
    pub unsafe fn register(&self, token: StopRef<'_>) {
        // SAFETY: rules 1 to 3, which this function requires of the owner.
        unsafe { self.register_with(token.state()) };
    }

    /// Registers the callback with this state, if there is one.
    ///
    /// # Safety
    /// As for [`register`](RawCallback::register).
    #[inline]
    unsafe fn register_with(&self, state: Option<&StopState>) {
        let Some(state) = state else { return };
        self.state.set(Some(NonNull::from(state)));
        // SAFETY: our rules 1 and 2 are rule 2 of the state. Rule 3: the node is in no list yet.
        if let Err(reason) = unsafe { state.insert(self.node()) } {
            self.state.set(None);
            // SAFETY: rule 5: the node was not inserted, so only this thread runs it.
            if let Some(call) = self.call.with_mut(|call| unsafe { (*call).take() }) {
                call.on_stop(reason);
            }
        }
    }

    /// Runs the callback of this node.
    ///
    /// # Safety
    /// Called once, by the state, with the node of a live `RawCallback<C>`.
    unsafe fn invoke(node: NonNull<Node>, reason: StopReason) -> Option<Onward> {
        // SAFETY: rule 7: `self.node()` has derived the pointer from all of `Self`. Rule 5: the state calls
        // this once. The call is moved out before it runs, because it may destroy the callback.
        let call = unsafe { node.cast::<Self>().as_ref().call.with_mut(|call| (*call).take()) };
        call.and_then(|call| call.pass_on(reason))
    }
}

impl<C> RawCallback<C> {
    /// Returns true if it was registered before a stop was requested, and was not removed since.
    #[inline]
    pub fn is_registered(&self) -> bool {
        self.state.get().is_some()
    }

    /// Removes the callback. Afterwards it does not run, on this thread or another.
    ///
    /// # Safety
    /// Called by the owner, and not while another thread is in `register`.
    #[inline]
    pub unsafe fn remove(&self) {
        if let Some(state) = self.state.take() {
            self.remove_from(state);
        }
    }

    /// Removes the node from the state that `state` held until now, or holds for the last time.
    #[inline]
    fn remove_from(&self, state: NonNull<StopState>) {
        // SAFETY: rule 2: the state exists. Rule 6: the node was inserted there, and not removed since: `remove`
        // clears `state`, and `drop` runs once.
        unsafe { state.as_ref().remove(self.node()) };
    }

    /// Returns the address of the node, derived from all of `self`: rule 7.
    fn node(&self) -> NonNull<Node> {
        NonNull::from(self).cast()
    }
}

impl<C> Drop for RawCallback<C> {
    #[inline]
    fn drop(&mut self) {
        // Not `remove`, which would also clear `state`: a write that nothing reads.
        if let Some(state) = self.state.get() {
            self.remove_from(state);
        }
        // For models: checks that no other thread accesses the closure any more.
        self.call.with_mut(|_| ());
    }
}

impl<C> fmt::Debug for RawCallback<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RawCallback").field("registered", &self.is_registered()).finish_non_exhaustive()
    }
}
