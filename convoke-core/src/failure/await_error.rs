//! The result of awaiting a sender: its value, or a `Result` if it can fail.

use crate::Never;

/// The error type of a sender that can be awaited. A sender that cannot fail yields its value, every other
/// one a `Result`.
///
/// Stable Rust cannot express "any type but [`Never`]". It can express "any type that is `Unpin`": error
/// types are, and `Never` is not. A sender whose error type is not `Unpin` is awaited with
/// `sender.into_result().await`, or with the error in a `Box`.
#[diagnostic::on_unimplemented(
    message = "a sender that fails with `{Self}` cannot be awaited as it is",
    label = "the error of the awaited sender is not known to be `Unpin`",
    note = "await `sender.into_result()` instead, which yields a `Result` with any error type",
    note = "in generic code, `{Self}: Unpin` lets it be awaited as it is"
)]
pub trait AwaitError: Sized {
    /// The result of an `await`, for a sender of values of type `V`.
    type Output<V>;

    /// Creates the result from a value.
    fn value<V>(value: V) -> Self::Output<V>;

    /// Creates the result from the error.
    fn error<V>(self) -> Self::Output<V>;
}

impl AwaitError for Never {
    type Output<V> = V;

    #[inline]
    fn value<V>(value: V) -> V {
        value
    }

    fn error<V>(self) -> V {
        self.absurd()
    }
}

impl<E: Unpin> AwaitError for E {
    type Output<V> = Result<V, E>;

    #[inline]
    fn value<V>(value: V) -> Result<V, E> {
        Ok(value)
    }

    fn error<V>(self) -> Result<V, E> {
        Err(self)
    }
}
