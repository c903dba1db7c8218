//! What a diagnosis knows of threads: whether somebody watches, and which task each thread polls.
//!
//! It lies below the tasks, because every poll writes it, and costs a poll three instructions while nobody watches. The diagnosis
//! itself is several layers above.

#[cfg(feature = "loom")]
mod no_threads;
#[cfg(not(feature = "loom"))]
mod threads;
#[cfg(feature = "loom")]
use no_threads as threads;

pub use threads::{MARKS, Mark, Polled, SetAside, polls, set_aside, watch};

// Not loom's: a model has no `static`. Its models turn it on before they begin.
use std::sync::atomic::{AtomicUsize, Ordering};

/// The number of diagnoses under way.
static ON: AtomicUsize = AtomicUsize::new(0);

/// Returns true while a diagnosis is under way.
#[inline]
pub fn is_on() -> bool {
    ON.load(Ordering::Relaxed) != 0
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
