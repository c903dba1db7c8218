//! Work that blocks its thread, on threads of its own: [`blocking()`].
//!
//! A [`BlockingPool`] has a bound on its threads. A [`Blocking`] future takes a permit of the bound, hands
//! its function to a thread, and waits for it in the task. A thread therefore always exists, or may be
//! started, for every job that is posted. A stop of the task is passed on to the function, which has a grace
//! period to return.

// | file | contents |
// | --- | --- |
// | `pool.rs` | the pool, and its bound |
// | `threads.rs` | the threads; `threads_of_a_model.rs` is its twin for models |
// | `future.rs` | the future: waits for a thread and the function, passes a stop on, enforces the grace period |
// | `inside.rs` | what the function sees of the task: its stop, its locals, and a way back into async code |
// | `overdue.rs` | the hook for functions that did not stop in time |

mod future;
mod inside;
mod overdue;
mod pool;
#[cfg(not(feature = "loom"))]
mod threads;
#[cfg(feature = "loom")]
#[path = "threads_of_a_model.rs"]
mod threads;

pub use future::{Blocking, DEFAULT_BLOCKING_GRACE};
pub use inside::Inside;
pub use overdue::{Overdue, set_overdue_hook};
pub use pool::{BlockingPool, DEFAULT_THREADS, POOL};

/// Runs a function that blocks, on a thread for that, while the task waits. The threads are those of the
/// runtime, of the [pool](BlockingPool) that the environment [names](POOL), or of the process. The function
/// is given an [`Inside`]: with it, it sees if it was asked to stop, reads the locals of the task, and calls
/// back into async code.
///
/// Use this if a call blocks its thread: files, a database without async, long computations. Use
/// [`run_on`](crate::run_on()) with a pool for computations that may be split at an `await`.
///
/// When the task is asked to stop, so is the function, and the task waits for it for a [grace
/// period](Blocking::grace). A function that takes longer is left to run on its thread, and reported to the
/// [hook](set_overdue_hook): a thread cannot be forced to end.
///
/// - *Completes with* what the function returns, also if it was asked to stop meanwhile. Stopped, if a stop
///   was requested before there was a thread for it, or if the grace period is over.
/// - *If dropped*, the function is asked to stop, and reported to the hook if it runs.
/// - *Runs on* a thread of the pool. The task resumes on its own executor.
/// - *Panics* if the function does, and outside a task.
///
/// ```
/// use convoke::prelude::*;
///
/// let outcome = block_on(async {
///     blocking(|inside| {
///         let mut primes = 0;
///         for n in 2..10_000_u32 {
///             if inside.stop_requested() {
///                 break;
///             }
///             let mut divisors = (2..n).take_while(|d| d * d <= n);
///             primes += u32::from(divisors.all(|d| n % d != 0));
///         }
///         primes
///     })
///     .await
/// });
/// assert_eq!(outcome, Outcome::Value(1229));
/// ```
#[doc(alias = "spawn_blocking")]
#[track_caller]
pub fn blocking<T, F>(f: F) -> Blocking<T, F>
where
    F: FnOnce(Inside) -> T + Send + 'static,
    T: Send + 'static,
{
    BlockingPool::of_this_task().run(f)
}
