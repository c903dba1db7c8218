//! `AsyncClose`: resources whose end takes a while.

use core::fmt;
use core::future::Future;

use super::Exit;

/// A resource that is closed by awaiting: a connection that says goodbye, a file that is flushed, a lease that is given
/// back. [`using`](super::using) and [`cleanups`](super::cleanups) do that on every exit.
///
/// An implementation is an `async fn`. Its future is `Send`, so that it can be closed in every task; what must not
/// leave its thread is cleaned up by [`ensure`](super::ensure), which does not ask for that.
///
/// A resource still has a destructor, for when there is nobody to wait: it should let go of what it has without a word.
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
///         checkpoint().await; // Or whatever it takes.
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
    note = "or leave the type as it is and say what is to be done: `ensure(async |exit| {{ .. }}, async {{ .. }})`"
)]
pub trait AsyncClose: Sized {
    /// How closing fails: a `std::error::Error`, or `Never` if it cannot.
    type Error: fmt::Display;

    /// Closes it. The body that used it has left as `exit` says, and its frame is gone.
    ///
    /// It is shielded from the stop of what is around it; it is asked to stop when its grace period is over.
    fn close(self, exit: Exit) -> impl Future<Output = Result<(), Self::Error>> + Send;
}
