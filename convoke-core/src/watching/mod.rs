//! Which task each thread polls, for diagnosis.
//!
//! It lies below the tasks, because every poll writes to it. It costs a poll three instructions while no
//! diagnosis is under way. The diagnosis itself is several layers above.
//!
//! # Protocol
//! - A thread that polls a task calls [`polls`] first, and [`watch`] if that returns false.
//! - A thread that runs a loop inside a poll calls [`set_aside`] first, and keeps the result until the loop
//!   ends.
//! - A diagnosis calls [`begin`] and [`end`], on any thread. In between it takes a [`PolledMark`] and visits the
//!   threads by it.

#[cfg(feature = "loom")]
mod no_threads;
#[cfg(not(feature = "loom"))]
mod threads;
#[cfg(feature = "loom")]
use no_threads as threads;

pub use threads::{MARKS, PolledMark, PolledTask, SetAside, polls, set_aside, watch};

// Not loom's: a model has no `static`. Models turn it on before they begin.
use std::sync::atomic::{AtomicUsize, Ordering};

/// The number of diagnoses under way.
static ON: AtomicUsize = AtomicUsize::new(0);

/// Returns true while a diagnosis is under way.
#[inline]
pub fn is_on() -> bool {
    ON.load(Ordering::Relaxed) != 0
}

/// The number of hooks of tasks that there are.
static HOOKED: AtomicUsize = AtomicUsize::new(0);

/// Returns true while there are hooks of tasks.
#[inline]
pub fn is_hooked() -> bool {
    HOOKED.load(Ordering::Relaxed) != 0
}

/// Counts hooks of tasks: from now on threads do not take the short path of a poll.
pub fn begin_hooks() {
    HOOKED.fetch_add(1, Ordering::SeqCst);
    threads::watch_changed();
}

/// Ends what [`begin_hooks`] began.
pub fn end_hooks() {
    HOOKED.fetch_sub(1, Ordering::SeqCst);
    threads::watch_changed();
}

/// Begins a diagnosis: from now on threads record which task they poll.
pub fn begin() {
    ON.fetch_add(1, Ordering::SeqCst);
    threads::watch_changed();
}

/// Ends a diagnosis. If it is the last one, calls `last` before the threads are told.
pub fn end(last: impl FnOnce()) {
    if ON.fetch_sub(1, Ordering::SeqCst) == 1 {
        last();
    }
    threads::watch_changed();
}
