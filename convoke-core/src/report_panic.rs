//! How an executor treats a panic that escaped a piece of work: it calls a handler and goes on.

use crate::Panic;

/// Writes the panic to standard error. The default handler. Does not panic, even if standard error is closed.
#[cold]
pub fn report_panic(panic: Panic) {
    let _ = Panic::catch(|| eprintln!("convoke: a piece of work {panic}; the executor goes on"));
}

/// Calls `f` and passes its panic to `handler`. A panic of the handler is discarded.
#[inline]
pub fn contain(handler: fn(Panic), f: impl FnOnce()) {
    if let Err(panic) = Panic::catch(f) {
        let _ = Panic::catch(|| handler(panic));
    }
}
