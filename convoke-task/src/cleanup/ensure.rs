//! `ensure(clean_up, body)`: clean-up that belongs to no resource.

use core::future::Future;
use core::panic::Location;

use super::Exit;
use super::cleanup_output::CleanupOutput;
use super::future::{Held, Reports, Using};
use super::problem::Whose;

/// Runs a body, and when it has left, by whichever door, a clean-up, which is told how. The body's frame is gone before; the
/// clean-up is shielded from the stop, and has a [grace period](Using::grace).
///
/// The clean-up returns `()` or a `Result<(), E>`; neither it nor the body need be `Send` in a task that is not.
///
/// - *Completes with* what the body returns, or with the error of the clean-up; all as for [`using`](super::using).
/// - *If dropped* in flight, the body is dropped, the clean-up is skipped, and the [hook](super::set_cleanup_hook) is told.
/// - *Runs on* the task's executor, both of them.
/// - *Panics* outside a task.
///
/// ```
/// use std::sync::atomic::{AtomicU32, Ordering};
/// use convoke::prelude::*;
/// use convoke::task::stopped;
///
/// let running = AtomicU32::new(0);
/// let outcome = block_on(async {
///     running.fetch_add(1, Ordering::Relaxed);
///     let clean_up = async |exit: Exit| {
///         assert!(exit.is_stopped());
///         checkpoint().await;
///         running.fetch_sub(1, Ordering::Relaxed);
///     };
///     ensure(clean_up, async { stopped().await }).await
/// });
/// assert_eq!(outcome, Outcome::Stopped);
/// assert_eq!(running.load(Ordering::Relaxed), 0);
/// ```
#[track_caller]
pub fn ensure<K, C, F>(clean_up: K, body: F) -> Using<K, F, C>
where
    K: FnOnce(Exit) -> C,
    C: Future<Output: CleanupOutput>,
    F: Future,
{
    let whose = Whose { what: core::any::type_name::<K>(), place: Location::caller() };
    Using::new(body, Held::Here(Some(clean_up)), |clean_up, exit| clean_up(exit), whose, Reports::OncePolled)
}
