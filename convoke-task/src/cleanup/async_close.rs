//! `AsyncClose`: resources that are closed by awaiting.

use core::fmt;
use core::future::Future;

use super::Exit;

/// Resource that is closed by awaiting: a connection that says goodbye, a file that is flushed, a lease that
/// is returned. [`using`](super::using) and [`cleanups`](super::cleanups) close it on every exit.
///
/// An implementation is an `async fn`. Its future is `Send`, so that every task can close the resource. For a
/// resource that must stay on its thread, use [`ensure`](super::ensure), which has no such bound.
///
/// The destructor of a resource still runs if it is dropped without a close: it should release what it can
/// without waiting.
///
/// ```
/// use convoke::prelude::*;
///
/// struct Transaction { lines: Vec<String> }
///
/// impl AsyncClose for Transaction {
///     type Error = std::io::Error;
///
///     async fn close(self, exit: Exit) -> Result<(), std::io::Error> {
///         let word = if exit.is_clean() { "commit" } else { "roll back" };
///         checkpoint().await; // Or a message to the server.
///         println!("{word} {} lines", self.lines.len());
///         Ok(())
///     }
/// }
///
/// let outcome = block_on(async {
///     using(Transaction { lines: Vec::new() }, async |mut transaction| {
///         transaction.lines.push("one".into());
///         transaction.lines.len()
///     })
///     .await
/// });
/// assert_eq!(outcome.unwrap().unwrap(), 1);
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be closed by awaiting",
    label = "this is not an `AsyncClose`",
    note = "implement it: `impl AsyncClose for {Self} {{ type Error = Never; async fn close(self, exit: Exit) -> Result<(), Never> {{ .. }} }}`",
    note = "a stream of bytes is closed as a resource by `convoke::io::Closing`",
    note = "or leave the type as it is, and write the clean-up beside it: `ensure(async |exit| {{ .. }}, async {{ .. }})`"
)]
pub trait AsyncClose: Sized {
    /// Error of the close: a `std::error::Error`, or `Never` if it cannot fail.
    type Error: fmt::Display;

    /// Closes the resource. `exit` says how the body ended that used it; the body's frame is already dropped.
    ///
    /// The close is shielded from stop requests to its task. It is asked to stop when its grace period is over.
    fn close(self, exit: Exit) -> impl Future<Output = Result<(), Self::Error>> + Send;
}
