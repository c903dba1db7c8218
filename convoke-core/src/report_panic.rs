//! What an executor does with a panic that left a piece of work: it tells a handler, and goes on.

use crate::Panic;

/// Writes it to the error stream: the handler if nobody said otherwise. Does not panic: a stream that is closed is not written to.
#[cold]
pub fn report_panic(panic: Panic) {
    let _ = Panic::catch(|| eprintln!("convoke: a piece of work {panic}; the executor goes on"));
}

/// Calls `f`; a panic goes to the handler, and one of the handler no further than here.
#[inline]
pub fn contain(handler: fn(Panic), f: impl FnOnce()) {
    if let Err(panic) = Panic::catch(f) {
        let _ = Panic::catch(|| handler(panic));
    }
}
