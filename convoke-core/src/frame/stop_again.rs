//! The hint for code that goes on after a caught stop, and is stopped again at its next wait. The request still
//! holds, so that wait ends the function, and what follows does not run: a surprise for people who know errors,
//! which are gone when they are caught.
//!
//! A frame knows of a caught stop until its poll ends, and a wait that is stopped again is stopped in the same
//! poll. So the mark costs nothing: it is a byte beside two others, written with them, and read only when a
//! future ends as stopped.

use core::cell::Cell;
use core::panic::Location;
use core::ptr;

thread_local! {
    /// The address of the last wait location that was reported, for comparison. One line for many tasks that
    /// run the same code.
    static REPORTED: Cell<*const Location<'static>> = const { Cell::new(ptr::null()) };
}

/// Reports that a task caught a stop, and was stopped again. `waited` is where it waited when it was stopped.
#[cold]
#[inline(never)]
pub(super) fn report(waited: Option<&'static Location<'static>>) {
    let address = waited.map_or(ptr::dangling(), ptr::from_ref);
    if REPORTED.with(|reported| reported.replace(address)) == address {
        return;
    }
    let waited = waited.map_or_else(String::new, |location| format!(" (it had waited at {location})"));
    eprintln!(
        "convoke: a task caught a stop with `catch_stopped`{waited}, went on, and was stopped again at its next await: the \
         request still holds. What must run after a stop belongs into `shield`, `ensure` or `using`"
    );
}
