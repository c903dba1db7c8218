//! The outputs of bodies of generators, and the items that consumers get.

use crate::flow::NoReturn;

/// Output of the body of a generator of `T`s: `()`, or a `Result<(), E>`.
#[diagnostic::on_unimplemented(
    message = "the body of a generator cannot return `{Self}`",
    label = "returns `{Self}`, which would be lost",
    note = "a body returns `()`, or a `Result<(), E>`; it passes values to the consumer with `yield_value`"
)]
pub trait GeneratorOutput<T>: Sized {
    /// Item that the consumer gets: `T`, or `Result<T, E>`.
    type Item;

    /// Makes an item of a yielded value.
    fn item(value: T) -> Self::Item;

    /// Makes the last item of the output: an error. Returns `None` for a success.
    fn last(self) -> Option<Self::Item>;

    /// Output of [`close`](super::Generator::close): that of the body, or `()` for a body that never returns.
    type Closed;

    /// Makes the output of `close` for a body that returned when it was stopped.
    fn into_closed(self) -> Self::Closed;

    /// Makes the output of `close` for a body that stopped.
    fn closed() -> Self::Closed;
}

impl<T> GeneratorOutput<T> for () {
    type Item = T;

    #[inline]
    fn item(value: T) -> T {
        value
    }

    fn last(self) -> Option<T> {
        None
    }

    type Closed = ();

    fn into_closed(self) {}

    fn closed() {}
}

/// A body that never returns.
impl<T> GeneratorOutput<T> for NoReturn {
    type Item = T;

    #[inline]
    fn item(value: T) -> T {
        value
    }

    fn last(self) -> Option<T> {
        self
    }

    type Closed = ();

    fn into_closed(self) {
        self
    }

    fn closed() {}
}

impl<T, E> GeneratorOutput<T> for Result<(), E> {
    type Item = Result<T, E>;

    #[inline]
    fn item(value: T) -> Result<T, E> {
        Ok(value)
    }

    fn last(self) -> Option<Result<T, E>> {
        self.err().map(Err)
    }

    type Closed = Self;

    fn into_closed(self) -> Self {
        self
    }

    fn closed() -> Self {
        Ok(())
    }
}
