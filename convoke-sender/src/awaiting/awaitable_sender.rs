//! A sender that can be awaited, as a bound: for functions that return one without naming its type.

use core::future::IntoFuture;

use super::{AwaitError, Awaited};
use crate::Sender;

/// A sender that can be awaited: it borrows nothing, and its value and its error are `Send`. Every sender that
/// qualifies is one.
///
/// A function that returns `impl Sender` hides that its sender can be awaited; its caller writes
/// `sender.into_awaited().await`. With `impl AwaitableSender` the caller writes `.await` alone.
///
/// ```
/// use convoke::prelude::*;
/// use convoke::sender::prelude::*;
///
/// fn double(n: u32) -> impl AwaitableSender<Value = u32, Error = Never> {
///     just(n).then(|n| 2 * n)
/// }
///
/// assert_eq!(block_on(async { double(21).await }), Outcome::Value(42));
/// ```
pub trait AwaitableSender:
    Sender<Value: Send, Error: AwaitError + Send>
    + IntoFuture<
        Output = <<Self as Sender>::Error as AwaitError>::Output<<Self as Sender>::Value>,
        IntoFuture = Awaited<Self>,
    > + 'static
{
}

#[diagnostic::do_not_recommend]
impl<S> AwaitableSender for S where
    S: Sender<Value: Send, Error: AwaitError + Send>
        + IntoFuture<
            Output = <<S as Sender>::Error as AwaitError>::Output<<S as Sender>::Value>,
            IntoFuture = Awaited<S>,
        > + 'static
{
}
