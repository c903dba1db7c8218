//! Room for one child inside its parent, filled when the parent is pinned and the child's receiver can point back.

#![allow(unsafe_code)]

use core::cell::Cell;
use core::fmt;
use core::marker::PhantomPinned;
use core::mem::MaybeUninit;
use core::pin::Pin;
use core::ptr::NonNull;

use super::operation::Operation;
use crate::sync::{UnsafeCell, const_outside_models};
use crate::{Outcome, Panic};

/// Holds a child operation in place, for a parent that connects late. Empty at first; dropping it drops the child.
///
/// A child that is started may complete its parent, and the parent may then be freed with the slot in it. So what starts
/// a child takes the slot by pointer: a reference would have to stay valid until the function returns.
pub struct Slot<O> {
    child: UnsafeCell<MaybeUninit<O>>,
    full: Cell<bool>,
    _pinned: PhantomPinned,
}

// SAFETY: the contracts of the methods ask the parent that one thread at a time uses the slot.
unsafe impl<O: Send> Sync for Slot<O> {}

impl<O: Operation> Slot<O> {
    const_outside_models! {
        /// An empty slot.
        #[inline]
        pub fn new() -> Self {
            Self { child: UnsafeCell::new(MaybeUninit::uninit()), full: Cell::new(false), _pinned: PhantomPinned }
        }
    }

    /// Connects the child into the slot.
    ///
    /// # Safety
    /// The slot is pinned with its parent, is empty, and no other thread uses it.
    #[inline]
    pub unsafe fn connect(&self, connect: impl FnOnce() -> O) {
        // SAFETY: the slot is empty and ours, so nothing is overwritten.
        unsafe { (*self.child.get()).write(abort_on_unwind(connect)) };
        self.full.set(true);
    }

    /// Starts the child that was connected. The slot may be gone when this returns.
    ///
    /// # Safety
    /// `this` points to a slot that holds a child which was not started, and outlives its completion.
    #[inline]
    pub unsafe fn start(this: NonNull<Self>) {
        // SAFETY: the slot is alive until the child has completed.
        let child = unsafe { this.as_ref() }.child.get().cast::<O>();
        // SAFETY: the slot is full; the child does not move, as the slot is pinned with its parent; the caller
        // promised that it is started once and that the storage lives until it has completed.
        abort_on_unwind(|| unsafe { Pin::new_unchecked(&mut *child).start() });
    }

    /// Connects the child and starts it.
    ///
    /// # Safety
    /// As for [`connect`](Slot::connect) and [`start`](Slot::start).
    #[inline]
    pub unsafe fn run(this: NonNull<Self>, connect: impl FnOnce() -> O) {
        // SAFETY: both contracts are part of the contract of this function. The slot is alive until the child that is
        // connected here was started and has completed.
        unsafe {
            this.as_ref().connect(connect);
            Self::start(this);
        }
    }

    /// Destroys the child, if there is one.
    ///
    /// # Safety
    /// The child has completed or was never started, and no other thread uses the slot.
    #[inline]
    pub unsafe fn clear(&self) {
        if self.full.replace(false) {
            // SAFETY: the slot was full, and the caller promised that nobody uses the child any more.
            unsafe { (*self.child.get()).assume_init_drop() };
        }
    }
}

impl<O: Operation> Slot<O> {
    /// Destroys the child that has completed with `outcome`. If its destructor panics that is the outcome, unless there
    /// was a panic before: whoever waits for the outcome is not to wait for ever.
    ///
    /// # Safety
    /// As for [`clear`](Slot::clear).
    #[inline]
    pub unsafe fn clear_after<V, E>(&self, outcome: Outcome<V, E>) -> Outcome<V, E> {
        // SAFETY: the caller's.
        match Panic::catch(|| unsafe { self.clear() }) {
            Ok(()) => outcome,
            Err(panic) => outcome.or_panic(panic),
        }
    }
}

impl<O: Operation> Default for Slot<O> {
    fn default() -> Self {
        Self::new()
    }
}

impl<O> Drop for Slot<O> {
    #[inline]
    fn drop(&mut self) {
        if self.full.get() {
            // SAFETY: the slot is full, and whoever drops the parent has waited for its completion.
            unsafe { self.child.get_mut().assume_init_drop() };
        }
    }
}

impl<O> fmt::Debug for Slot<O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Slot").field("full", &self.full.get()).finish()
    }
}

/// Calls `f`, which by contract does not panic. If it does, work that is already running points into storage
/// that unwinding would free: there is no way on, and the process ends with a message.
#[inline]
pub fn abort_on_unwind<T>(f: impl FnOnce() -> T) -> T {
    struct Bomb;
    impl Drop for Bomb {
        #[cold]
        fn drop(&mut self) {
            eprintln!(
                "convoke: a sender's `connect` or an operation's `start` panicked; these must not. Aborting."
            );
            std::process::abort();
        }
    }
    let bomb = Bomb;
    let value = f();
    core::mem::forget(bomb);
    value
}
