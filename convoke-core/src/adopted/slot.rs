//! Memory for one child inside its parent, filled when the parent is pinned and the child's receiver can
//! point back to it.

#![allow(unsafe_code)]

use core::cell::Cell;
use core::fmt;
use core::marker::PhantomPinned;
use core::mem::MaybeUninit;
use core::pin::Pin;
use core::ptr::NonNull;

use super::operation::Operation;
use crate::report_panic::abort_with;
use crate::sync::{UnsafeCell, const_outside_models};
use crate::{Outcome, Panic};

/// Memory for a child operation, for a parent that connects late. Empty at first; dropping it drops the
/// child.
///
/// 1. The slot does not move while it is full.
/// 2. One thread at a time uses the slot: its parent sees to that.
/// 3. `full` says whether `child` is initialised.
/// 4. A child that is started may complete its parent, and the parent may then be freed with the slot in it.
///    So `start` and `run` take the slot by pointer: a reference would have to stay valid until the function
///    returns.
pub struct Slot<O> {
    child: UnsafeCell<MaybeUninit<O>>,
    full: Cell<bool>,
    _pinned: PhantomPinned,
}

// SAFETY: rule 2: the parent, which calls the unsafe methods, lets one thread at a time use the slot.
unsafe impl<O: Send> Sync for Slot<O> {}

impl<O: Operation> Slot<O> {
    const_outside_models! {
        /// Creates an empty slot.
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
        // SAFETY: rule 2: the parent calls this on the thread that starts it, before other threads know of the
        // child. Rule 3: it does so once, or after `clear`, so that nothing is overwritten.
        unsafe { (*self.child.get()).write(abort_on_unwind(connect)) };
        self.full.set(true);
    }

    /// Starts the child that was connected. The slot may be freed when this returns.
    ///
    /// # Safety
    /// `this` points to a slot that holds a child which was not started, and outlives its completion.
    #[inline]
    pub unsafe fn start(this: NonNull<Self>) {
        // SAFETY: rule 4: the slot is alive, as the child has not completed before it is started.
        let child = unsafe { this.as_ref() }.child.get().cast::<O>();
        // SAFETY: rule 3: the slot is full, as the parent has connected the child before. Rule 1: the child does
        // not move. The parent starts it once, and keeps the slot until the child has completed (rule 4).
        abort_on_unwind(|| unsafe { Pin::new_unchecked(&mut *child).start() });
    }

    /// Connects the child and starts it.
    ///
    /// # Safety
    /// As for [`connect`](Slot::connect) and [`start`](Slot::start).
    #[inline]
    pub unsafe fn run(this: NonNull<Self>, connect: impl FnOnce() -> O) {
        // SAFETY: the parent's slot is empty, and pinned with it: this function requires what `connect` does.
        // So it is full for `start`; and rule 4: it exists until the child has completed.
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
            // SAFETY: rule 3: the slot was full, and is marked as empty now. Nothing uses the child any more: the
            // parent calls this after the child has completed it, or before it has started the child.
            unsafe { (*self.child.get()).assume_init_drop() };
        }
    }
}

impl<O: Operation> Slot<O> {
    /// Destroys the child that has completed with `outcome`. If its destructor panics, that becomes the
    /// outcome, unless the outcome is a panic already.
    ///
    /// # Safety
    /// As for [`clear`](Slot::clear).
    #[inline]
    pub unsafe fn clear_after<V, E>(&self, outcome: Outcome<V, E>) -> Outcome<V, E> {
        // SAFETY: the child has completed with `outcome`, so nothing uses it any more, as `clear` requires.
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
            // SAFETY: rule 3: the slot is full. The parent is dropped after its child has completed, or
            // before it was started.
            unsafe { self.child.get_mut().assume_init_drop() };
        }
    }
}

impl<O> fmt::Debug for Slot<O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Not `full`: another thread may use the slot (rule 2), and this is safe to call.
        f.debug_struct("Slot").finish_non_exhaustive()
    }
}

/// Calls `f`, which by contract does not panic. If it does, running work points into storage that unwinding
/// would free, so the process aborts with a message.
#[inline]
pub fn abort_on_unwind<T>(f: impl FnOnce() -> T) -> T {
    struct AbortOnDrop;
    impl Drop for AbortOnDrop {
        #[cold]
        fn drop(&mut self) {
            abort_with(
                &"a sender's `connect` or an operation's `start` panicked, which they must not. Aborting.",
            );
        }
    }
    let guard = AbortOnDrop;
    let value = f();
    core::mem::forget(guard);
    value
}
