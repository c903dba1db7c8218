//! `using(resource, body)`: a body that uses a resource, and a close that is awaited on every exit.

use core::future::Future;
use core::panic::Location;

use super::future::{Held, Reports, Using};
use super::lent::lend;
use super::problem::CleanupId;
use super::{AsyncClose, Lent};

/// Runs a body that uses a resource, and then closes the resource, however the body has ended: with a value,
/// a failure (`?` on a `Result` or an `Option`, see [`BodyOutput`](convoke_core::BodyOutput)), a stop or a
/// panic. The close runs after the body's frame was dropped, is shielded from stop requests, and has a [grace
/// period](Using::grace).
///
/// Use this if a resource has a close that is awaited. Use [`ensure`](crate::ensure()) for a clean-up that
/// belongs to no resource, and [`cleanups`](crate::cleanup::cleanups()) for a number of them that is not known
/// before.
///
/// The body is an `async` closure, and may borrow from around it. It gets the resource in a [`Lent`], which
/// dereferences to the resource. That costs one allocation.
///
/// - *Completes with* the output of the body, after the close. If the body returned a value and the close
///   fails, with the error of the close, converted as by `?`: see
///   [`CleanupFailure`](convoke_core::CleanupFailure). Stopped, if the body was stopped. A failure of the
///   close that cannot be returned, because the body failed, stopped or panicked, goes to the
///   [hook](super::set_cleanup_hook).
/// - *If dropped* while the body runs, as by a foreign `select!`, body and resource are dropped, the close is
///   skipped, and the hook hears of it. A stop is not a drop: also inside a foreign `join!`, every branch
///   finishes its close.
/// - *Runs on* the task that awaits it, both of them.
/// - *Panics* with the panic of the body; with that of the close, if the body has neither failed nor
///   panicked; and outside a task.
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
///         checkpoint().await; // If it is stopped here, the connection is still closed.
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
    let whose = CleanupId { what: core::any::type_name::<R>(), location: Location::caller() };
    let (lent, lender) = lend(resource);
    Using::new(body(lent), Held::Lent(lender), R::close, whose, Reports::Now)
}
