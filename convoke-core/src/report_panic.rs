//! How an executor treats a panic that escaped a piece of work: it calls a handler and goes on.

use core::fmt;
use std::io::Write;

use crate::Panic;

/// Writes the panic to standard error. The default handler. Does not panic, even if standard error is closed.
#[cold]
pub fn report_panic(panic: Panic) {
    let _ = Panic::catch(|| eprintln!("convoke: a piece of work {panic}; the executor goes on"));
}

/// Writes a message to standard error and aborts the process. `eprintln!` would panic where standard error cannot be
/// written, and unwind from a place that must not be left.
#[cold]
#[inline(never)]
pub fn abort_with(message: &dyn fmt::Display) -> ! {
    let _ = writeln!(std::io::stderr(), "convoke: {message}");
    std::process::abort()
}

/// Calls `f` and returns its value. Passes its panic to `handler`, and returns `None` then. A panic of the
/// handler is discarded.
#[inline]
pub fn contain<R>(handler: fn(Panic), f: impl FnOnce() -> R) -> Option<R> {
    match Panic::catch(f) {
        Ok(value) => Some(value),
        Err(panic) => {
            call_handler(handler, panic);
            None
        }
    }
}

/// Calls the handler, and discards its panic. Not part of `contain`, of which there are many instances.
#[cold]
#[inline(never)]
fn call_handler(handler: fn(Panic), panic: Panic) {
    let _ = Panic::catch(|| handler(panic));
}
