//! Work that blocks its thread, on threads of its own: [`blocking()`].
//!
//! | file | what is in it |
//! | --- | --- |
//! | `pool.rs` | how many there may be |
//! | `threads.rs` | the threads; `threads_of_a_model.rs` is its twin for models |
//! | `future.rs` | waits for the work; asks it to stop, and gives it a while |
//! | `inside.rs` | what the work sees of the task that waits: its stop, and a way back into async code |
//! | `overdue.rs` | the hook for work that did not stop in time |

mod future;
mod inside;
mod overdue;
mod pool;
#[cfg(not(feature = "loom"))]
mod threads;
#[cfg(feature = "loom")]
#[path = "threads_of_a_model.rs"]
mod threads;

pub use future::{Blocking, DEFAULT_GRACE};
pub use inside::Inside;
pub use overdue::{Overdue, set_overdue_hook};
pub use pool::{BlockingPool, DEFAULT_THREADS, POOL};

/// Runs a function that blocks, on a thread for that, while the task waits. The threads are those of the runtime, or of the
/// [pool](BlockingPool) that was named [in the environment](POOL), or else of the process. The function is given an [`Inside`]: with
/// it, it sees whether it was asked to stop, reads the locals of the task, and calls back into async code.
///
/// When the task is asked to stop, so is the function, and the task waits for it for a [grace period](Blocking::grace). A
/// function that takes longer is left alone on its thread, and named to the [hook](set_overdue_hook): nothing else can be done
/// with a thread that does not listen.
///
/// - *Completes with* what the function returns, also if it was asked to stop meanwhile. Stopped, if a stop was asked for
///   before there was a thread for it, or the grace period is over.
/// - *If dropped*, the function is asked to stop, and named to the hook if it runs.
/// - *Runs on* a thread of the pool. The task goes on where it was.
/// - *Panics* as the function does, and outside a task.
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
///             primes += u32::from((2..n).take_while(|d| d * d <= n).all(|d| n % d != 0));
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
