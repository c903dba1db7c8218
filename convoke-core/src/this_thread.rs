//! What a thread is asked for at every poll of a task, in one place: one address leads to all of it.

use core::cell::Cell;
use core::fmt;
use core::ptr;
// Not loom's: of who polls what nothing depends.
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::sync::thread_local;

/// See the head of this file.
pub(crate) struct ThisThread {
    /// The number of the home that it is in, or zero.
    pub(crate) home: Cell<u32>,
    /// The nearest frame, or null outside all tasks.
    pub(crate) window: Cell<*const ()>,
    polling: Polling,
}

thread_local! {
    static THIS_THREAD: ThisThread = ThisThread {
        home: Cell::new(0),
        window: Cell::new(ptr::null()),
        polling: Polling::new(),
    };
}

impl ThisThread {
    #[inline]
    pub(crate) fn with<R>(f: impl FnOnce(&Self) -> R) -> R {
        THIS_THREAD.with(f)
    }
}

/// Which task a thread polls, and whether there is anything to look at before it does. Mostly there is nothing.
pub(crate) struct Polling {
    /// The address of the task that it polled last, and marks of those who watch.
    pub task: AtomicUsize,
    /// The same of the task around the loop that it runs, if there is one.
    pub around: AtomicUsize,
    /// `UNLISTED`, `WATCHED`, and `CLOSED` for each home that is closed in which it is. Others may change `WATCHED`.
    reasons: AtomicUsize,
}

const UNLISTED: usize = 1;
const WATCHED: usize = 1 << 1;
const CLOSED: usize = 1 << 2;

impl Polling {
    const fn new() -> Self {
        Self { task: AtomicUsize::new(0), around: AtomicUsize::new(0), reasons: AtomicUsize::new(UNLISTED) }
    }

    /// That of this thread. It stays where it is until the thread ends.
    #[inline]
    pub(crate) fn here<R>(f: impl FnOnce(&Self) -> R) -> R {
        ThisThread::with(|thread| f(&thread.polling))
    }

    /// The thread begins to poll this task. True if there is nothing to look at.
    #[inline]
    pub(crate) fn begin(&self, task: usize) -> bool {
        self.task.store(task, Ordering::Relaxed);
        self.reasons.load(Ordering::Relaxed) == 0
    }

    /// True once: from now on the thread counts as known to those who watch.
    pub(crate) fn enlist(&self) -> bool {
        self.reasons.fetch_and(!UNLISTED, Ordering::Relaxed) & UNLISTED != 0
    }

    /// Whether tasks are watched; from any thread.
    pub(crate) fn set_watched(&self, watched: bool) {
        if watched {
            self.reasons.fetch_or(WATCHED, Ordering::Relaxed);
        } else {
            self.reasons.fetch_and(!WATCHED, Ordering::Relaxed);
        }
    }

    pub(crate) fn enter_closed(&self) {
        self.reasons.fetch_add(CLOSED, Ordering::Relaxed);
    }

    pub(crate) fn leave_closed(&self) {
        self.reasons.fetch_sub(CLOSED, Ordering::Relaxed);
    }

    pub(crate) fn is_in_closed(&self) -> bool {
        self.reasons.load(Ordering::Relaxed) >= CLOSED
    }
}

impl fmt::Debug for Polling {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Polling").finish_non_exhaustive()
    }
}
