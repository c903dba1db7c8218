//! The report of a loop that sleeps inside a task. While it sleeps, its thread runs nothing else: if it waits for a
//! task of the loop around it, it waits for ever. Whether it does is not known, so the report comes after a delay, and
//! the loop goes on waiting.

use core::cell::Cell;
use core::panic::Location;
use core::ptr;
use std::time::Duration;

use convoke_core::raw::{Frame, contain};

/// Time for which a loop inside a task sleeps, with no timer to wait for, before that is reported.
pub(super) const REPORT_AFTER: Duration = Duration::from_secs(1);

thread_local! {
    /// The address of the last place that was reported, for comparison. One report for a call that is repeated.
    static REPORTED: Cell<*const Location<'static>> = const { Cell::new(ptr::null()) };
}

/// Returns true if this thread polls a task: a loop that sleeps now keeps that poll from ending.
pub(super) fn is_inside_a_task() -> bool {
    Frame::current(|frame| frame.is_some())
}

/// Reports the loop that was entered at `place`.
#[cold]
#[inline(never)]
pub(super) fn report(place: &'static Location<'static>) {
    if REPORTED.with(|reported| reported.replace(place)) == ptr::from_ref(place) {
        return;
    }
    // Standard error may be closed, and the loop must not unwind.
    let _ = contain(drop, || {
        eprintln!(
            "convoke: the call at {place} blocks inside a task, and has had nothing to run for {REPORT_AFTER:?}. The thread of \
             that task runs nothing else meanwhile: if the call waits for work of the same thread, it waits for ever. In a \
             task, await the future instead of passing it to `block_on` or `sync_wait`; use `blocking` for code that must block"
        );
    });
}
