//! Calls into executors that the program wrote, which may panic. The code that wakes, starts or completes
//! work must not be unwound by the executor of that work: other work waits for what comes after the call.

use core::any::type_name;

use super::{Executor, Runnable};
use crate::Panic;

/// Queues the work through a handle that the callee owns: the work may run, and free every other handle,
/// while `post` is still executing. Writes a panic of the executor to standard error. Work that the executor
/// dropped while it panicked has completed as stopped.
#[inline]
pub fn post_contained<X: Executor>(executor: X, runnable: Runnable) {
    call_contained(type_name::<X>, || executor.post_last(runnable));
}

/// Dispatches the work, as [`post_contained`] posts it. Returns `None` also if the executor has panicked.
#[inline]
pub fn dispatch_contained<X: Executor>(executor: X, runnable: Runnable) -> Option<Runnable> {
    call_contained(type_name::<X>, || executor.dispatch(runnable)).flatten()
}

/// Calls `call`, into the executor whose type `name` returns. Reports its panic and returns `None` then.
#[inline]
pub(super) fn call_contained<R>(name: fn() -> &'static str, call: impl FnOnce() -> R) -> Option<R> {
    match Panic::catch(call) {
        Ok(value) => Some(value),
        Err(panic) => {
            report(name, panic);
            None
        }
    }
}

/// Writes the panic to standard error. Does not panic, even if standard error is closed.
#[cold]
#[inline(never)]
fn report(name: fn() -> &'static str, panic: Panic) {
    let _ = Panic::catch(move || {
        let executor = name();
        eprintln!(
            "convoke: the executor `{executor}` {panic}; work that it did not queue completes as stopped"
        );
    });
}
