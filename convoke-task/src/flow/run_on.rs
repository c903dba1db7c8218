//! `run_on(&executor, future)`: runs a future on another executor.

use core::future::Future;

use convoke_core::env::Changes;
use convoke_core::raw::AdoptedFuture;
use convoke_core::{Executor, ExecutorRef};

use crate::child_env::ChildInEnv;
use crate::child_task::task;

/// Runs a future on another executor, and returns to this one with its result. Use
/// [`reschedule`](super::reschedule()) to move the task for good, and [`with`](super::with()) to change more than
/// the executor.
///
/// - *Completes with* what the future returns, on the executor of the task that awaits it. Stopped, if the
///   future was.
/// - *If dropped*, the future is asked to stop, and the task waits for it before it ends.
/// - *Runs on* the given executor; all that the future starts inherits it.
///
/// ```
/// use convoke::prelude::*;
/// use convoke::run_on;
///
/// let pool = ThreadPool::new(1).unwrap();
/// let executor = pool.executor();
/// let outcome = block_on(async move {
///     let here = std::thread::current().id();
///     let there = run_on(&executor, async { std::thread::current().id() }).await;
///     assert_eq!(std::thread::current().id(), here);
///     there != here
/// });
/// assert_eq!(outcome, Outcome::Value(true));
/// ```
#[track_caller]
pub fn run_on<X: Executor, F>(executor: &X, future: F) -> RunOn<F>
where
    F: Future<Output: Send> + Send + 'static,
{
    let changes = Changes::new().executor(ExecutorRef::new(executor.clone()));
    AdoptedFuture::new(ChildInEnv::new(task(future), changes))
}

/// The future of [`run_on()`].
pub type RunOn<F> = AdoptedFuture<ChildInEnv<F>>;
