//! `ensure(clean_up, body)`: clean-up without a resource.

use core::future::Future;
use core::panic::Location;

use super::Exit;
use super::cleanup_output::CleanupOutput;
use super::future::{Held, Reports, Using};
use super::problem::CleanupId;

/// Runs a body, and then a clean-up, however the body has ended: with a value, a failure, a stop or a panic.
/// The clean-up gets an [`Exit`], which says how. It runs after the body's frame was dropped, is shielded
/// from stop requests, and has a [grace period](Using::grace).
///
/// Use this if the clean-up belongs to no resource. Use [`using`](crate::using()) for a resource that has a
/// close.
///
/// The clean-up returns `()` or a `Result<(), E>`. Clean-up and body need not be `Send` in a task that is not.
///
/// - *Completes with* the output of the body, or with the error of the clean-up, as [`using`](super::using)
///   does.
/// - *If dropped* while the body runs, the body is dropped, the clean-up is skipped, and the
///   [hook](super::set_cleanup_hook) hears of it.
/// - *Runs on* the task that awaits it, both of them.
/// - *Panics* with the panic of the body, or of the clean-up; and outside a task.
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
    let whose = CleanupId { what: core::any::type_name::<K>(), location: Location::caller() };
    Using::new(body, Held::Here(Some(clean_up)), |clean_up, exit| clean_up(exit), whose, Reports::OncePolled)
}
