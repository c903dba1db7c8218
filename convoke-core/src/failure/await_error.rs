//! What an `await` of a sender yields: its value, or a `Result` where it can fail.

use crate::Never;

/// How the error of a sender shows where it is awaited. A sender that cannot fail yields its value, every other one a
/// `Result`.
///
/// Stable Rust cannot say "any type but `Never`". It can say "any type that is `Unpin`", which error types are, and [`Never`]
/// is not. An error type that is not `Unpin` is awaited with `sender.into_result().await`, or in a `Box`.
#[diagnostic::on_unimplemented(
    message = "a sender that fails with `{Self}` cannot be awaited as it is",
    label = "the error of the awaited sender is not known to be `Unpin`",
    note = "await `sender.into_result()` instead, which yields a `Result` with any error type",
    note = "in generic code, `{Self}: Unpin` lets it be awaited as it is"
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
