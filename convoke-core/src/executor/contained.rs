//! Calls into executors that the program wrote, which may panic. Whoever wakes, starts or completes work must not be unwound by the
//! executor that the work happens to run on: others wait for what comes after the call.

use core::any::type_name;

use super::{Executor, Runnable};
use crate::Panic;

/// Queues the work through a handle that is the callee's own: the work may run, and free every other handle, while `post` is
/// still executing. A panic of the executor is written to the error stream; work that the executor dropped while it
/// panicked has completed as stopped.
#[inline]
pub fn post_contained<X: Executor>(executor: X, runnable: Runnable) {
    contain::<X, _>(|| executor.post_last(runnable));
}

/// Dispatches the work as [`post_contained`] posts it. `None` also if the executor has panicked.
#[inline]
pub fn dispatch_contained<X: Executor>(executor: X, runnable: Runnable) -> Option<Runnable> {
    contain::<X, _>(|| executor.dispatch(runnable)).flatten()
}

/// Calls into an executor of type `X`.
#[inline]
pub(super) fn contain<X, R>(call: impl FnOnce() -> R) -> Option<R> {
    match Panic::catch(call) {
        Ok(value) => Some(value),
        Err(panic) => {
            report(type_name::<X>(), &panic);
            None
        }
    }
}

#[cold]
fn report(executor: &str, panic: &Panic) {
    eprintln!("convoke: the executor `{executor}` {panic}; work that it has not queued completes as stopped");
}
