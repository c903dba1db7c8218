//! What an `await` of a sender yields: its value, or a `Result` where it can fail.

use crate::Never;

/// How the error of a sender shows where it is awaited. A sender that cannot fail yields its value; one whose error is a
/// [`std::error::Error`] yields a `Result`.
///
/// Stable Rust cannot tell "any type but `Never`"; it can tell "any error type", which is what errors should be. For
/// senders with another error type, `sender.into_result().await` yields the `Result`.
#[diagnostic::on_unimplemented(
    message = "a sender that fails with `{Self}` cannot be awaited as it is",
    label = "awaited here, with an error that is not a `std::error::Error`",
    note = "await `sender.into_result()` instead, which yields a `Result` with any error type",
    note = "or give it an error type that implements `std::error::Error`, with `map_error`"
)]
pub trait AwaitError: Sized {
    /// What an `await` yields, for a value of this type.
    type Output<V>;

    /// That of a value.
    fn value<V>(value: V) -> Self::Output<V>;

    /// That of the error.
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

impl<E: core::error::Error> AwaitError for E {
    type Output<V> = Result<V, E>;

    #[inline]
    fn value<V>(value: V) -> Result<V, E> {
        Ok(value)
    }

    fn error<V>(self) -> Result<V, E> {
        Err(self)
    }
}
