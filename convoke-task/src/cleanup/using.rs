//! `using(resource, body)`: a resource, a body that has it, and the close that is awaited in any case.

use core::future::Future;
use core::panic::Location;

use super::future::{Held, Reports, Using};
use super::lent::lend;
use super::problem::Whose;
use super::{AsyncClose, Lent};

/// Runs a body that has a resource, and closes the resource when the body has left: by its end, by `?`, by a stop or by a
/// panic. The body's frame is gone before; the close is shielded from the stop, and has a
/// [grace period](Using::grace).
///
/// The body is an `async` closure and may borrow from around it. It has the resource in a [`Lent`], which is used like the
/// resource itself. That costs one allocation.
///
/// - *Completes with* what the body returns, after the close. If the body has returned a value and the close fails, with the
///   error of the close, as by `?`: see [`CleanupFailure`](convoke_core::CleanupFailure). A body that was stopped, or has
///   panicked, goes on doing so. What then cannot be passed on, because the body's own error, stop or panic is, is told
///   to the [hook](super::set_cleanup_hook); but a panic of the close goes on if the body has not failed or panicked.
/// - *If dropped* in flight, as a foreign `select!` does it, the body and the resource are dropped, the close is skipped,
///   and the hook is told. (A stop is no drop: also inside a foreign `join!` every branch comes to the end of its close.)
/// - *Runs on* the task's executor, both of them.
/// - *Panics* outside a task.
///
/// ```
/// use convoke::prelude::*;
///
/// struct Connection(&'static str);
///
/// impl AsyncClose for Connection {
///     type Error = std::io::Error;
///
///     async fn close(self, exit: Exit) -> Result<(), std::io::Error> {
///         println!("{} is closed; its user {exit}", self.0);
///         Ok(())
///     }
/// }
///
/// async fn length(name: &str) -> std::io::Result<usize> {
///     using(Connection("a connection"), async |connection| {
///         checkpoint().await; // If a stop is asked for here, the connection is closed nevertheless.
///         Ok(connection.0.len() + name.len())
///     })
///     .await
/// }
///
/// let outcome = block_on(async { length("name").await });
/// assert_eq!(outcome.unwrap().unwrap(), 16);
/// ```
#[track_caller]
pub fn using<R, B, F>(resource: R, body: B) -> Using<R, F, impl Future<Output = Result<(), R::Error>> + Send>
where
    R: AsyncClose,
    B: FnOnce(Lent<R>) -> F,
    F: Future,
{
    let whose = Whose { what: core::any::type_name::<R>(), place: Location::caller() };
    let (lent, lender) = lend(resource);
    Using::new(body(lent), Held::Lent(lender), R::close, whose, Reports::OncePolled)
}
