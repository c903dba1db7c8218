//! What an executor does with a panic that left a piece of work, if nobody said otherwise.

use convoke_core::Panic;

/// Writes it to the error stream.
#[cold]
pub(crate) fn report_panic(panic: Panic) {
    eprintln!("convoke: a piece of work {panic}; the executor goes on");
}
