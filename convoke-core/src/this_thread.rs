//! The thread-local state that every poll of a task needs, in one place: one address leads to all of it.

#![allow(unsafe_code)]

use core::cell::Cell;
use core::fmt;
use core::ptr;
// Not loom's: this state is diagnostic and orders nothing.
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::sync::thread_local;

/// The state of this thread that every poll needs.
pub(crate) struct ThisThread {
    /// The number of the [`OwnerId`](crate::raw::OwnerId) that this thread acts for, or zero.
    pub(crate) owner: Cell<u32>,
    /// The current frame, or null outside of all tasks.
    pub(crate) current_frame: Cell<*const ()>,
    /// The awaits that may still complete in the running poll: see `frame/budget.rs`.
    pub(crate) budget: Cell<u32>,
    /// The number of pieces of work that run on top of each other: see `executor/on_top.rs`.
    pub(crate) on_top: Cell<u32>,
    /// Called when a task yields because its budget is spent.
    pub(crate) on_yield: Cell<Option<fn()>>,
    polling: Polling,
}

/// The budget of code that is not limited. Large, and not infinite: so one kind of counter is enough.
pub(crate) const UNLIMITED_BUDGET: u32 = u32::MAX;

thread_local! {
    static THIS_THREAD: ThisThread = ThisThread {
        owner: Cell::new(0),
        current_frame: Cell::new(ptr::null()),
        budget: Cell::new(UNLIMITED_BUDGET),
        on_top: Cell::new(0),
        on_yield: Cell::new(None),
        polling: Polling::new(),
    };
}

impl ThisThread {
    /// Calls `f` with the state of this thread.
    ///
    /// Only the address comes from [`LocalKey::with`](std::thread::LocalKey::with), by a call that is not generic: with
    /// a call for each `f`, its code was a tenth of what a small program compiles.
    #[cfg(not(feature = "loom"))]
    #[inline]
    pub(crate) fn with<R>(f: impl FnOnce(&Self) -> R) -> R {
        // SAFETY: the address is that of a thread-local variable of this thread. It has a constant initial value and
        // no destructor, so it is valid until the thread ends, and `f` returns before that.
        f(unsafe { &*Self::address() })
    }

    /// Returns the current frame. Generic code calls this, and not `with`: a closure in generic code is compiled once for each of
    /// its instances.
    #[inline]
    pub(crate) fn current_frame() -> *const () {
        Self::with(|thread| thread.current_frame.get())
    }

    /// Sets the current frame and returns the one before. For generic code, as [`current_frame`](Self::current_frame) is.
    #[inline]
    pub(crate) fn replace_current_frame(frame: *const ()) -> *const () {
        Self::with(|thread| thread.current_frame.replace(frame))
    }

    /// Returns the address of the state of this thread.
    #[cfg(not(feature = "loom"))]
    #[inline]
    fn address() -> *const Self {
        const { assert!(!core::mem::needs_drop::<ThisThread>(), "a destructor would end its validity early") };
        THIS_THREAD.with(ptr::from_ref)
    }

    /// Calls `f` with the state of this thread.
    #[cfg(feature = "loom")]
    pub(crate) fn with<R>(f: impl FnOnce(&Self) -> R) -> R {
        THIS_THREAD.with(f)
    }
}

/// The task that a thread polls, and the reasons to do more than that before a poll. Mostly there are none.
pub(crate) struct Polling {
    /// The address of the task that was polled last, with the mark bits of the watchers.
    pub task: AtomicUsize,
    /// The task around the run loop that this thread runs inside a poll, if it does.
    pub outer_task: AtomicUsize,
    /// `UNLISTED`, `WATCHED`, and `CLOSED` once for each closed owner that the thread acts for. Other threads
    /// change only `WATCHED`.
    reasons: AtomicUsize,
}

/// Set while the thread is not in the list of the watchers.
const UNLISTED: usize = 1;
/// Set while a diagnosis is under way.
const WATCHED: usize = 1 << 1;
/// The unit of the number of closed owners.
const CLOSED: usize = 1 << 2;

impl Polling {
    const fn new() -> Self {
        Self {
            task: AtomicUsize::new(0),
            outer_task: AtomicUsize::new(0),
            reasons: AtomicUsize::new(UNLISTED),
        }
    }

    /// Calls `f` with the state of this thread, which does not move until the thread ends.
    #[inline]
    pub(crate) fn here<R>(f: impl FnOnce(&Self) -> R) -> R {
        ThisThread::with(|thread| f(&thread.polling))
    }

    /// Records the task that the thread begins to poll. Returns true if there is nothing else to do.
    #[inline]
    pub(crate) fn begin(&self, task: usize) -> bool {
        self.task.store(task, Ordering::Relaxed);
        self.reasons.load(Ordering::Relaxed) == 0
    }

    /// Marks the thread as listed. Returns true the first time.
    pub(crate) fn enlist(&self) -> bool {
        self.reasons.fetch_and(!UNLISTED, Ordering::Relaxed) & UNLISTED != 0
    }

    /// Records whether a diagnosis is under way. Called from any thread.
    pub(crate) fn set_watched(&self, watched: bool) {
        if watched {
            self.reasons.fetch_or(WATCHED, Ordering::Relaxed);
        } else {
            self.reasons.fetch_and(!WATCHED, Ordering::Relaxed);
        }
    }

    /// Records that the thread begins to act for a closed owner.
    pub(crate) fn enter_closed(&self) {
        self.reasons.fetch_add(CLOSED, Ordering::Relaxed);
    }

    /// Records that the thread has ceased to act for a closed owner.
    pub(crate) fn leave_closed(&self) {
        self.reasons.fetch_sub(CLOSED, Ordering::Relaxed);
    }

    /// Returns true if the thread acts for a closed owner.
    pub(crate) fn is_in_closed(&self) -> bool {
        self.reasons.load(Ordering::Relaxed) >= CLOSED
    }
}

impl fmt::Debug for Polling {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Polling").finish_non_exhaustive()
    }
}
