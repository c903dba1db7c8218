//! What the bodies of generators return, and what of that their consumers see.

use crate::flow::NoReturn;

/// What the body of a generator of `T`s returns: nothing, or a `Result` with nothing in it.
#[diagnostic::on_unimplemented(
    message = "the body of a generator cannot return `{Self}`",
    label = "returns `{Self}`, which nobody would see",
    note = "a body returns `()`, or a `Result<(), E>`; values are told with `yield_value`"
)]
pub trait GeneratorOutput<T>: Sized {
    /// What the consumer is given: `T`, or `Result<T, E>`.
    type Item;

    /// A value that was yielded.
    fn item(value: T) -> Self::Item;

    /// The body has returned this: whether that is one more item.
    fn last(self) -> Option<Self::Item>;

    /// What a [close](super::Generator::close) returns: the same, or nothing for a body that does not return.
    type Closed;

    /// The body has returned this on its way out.
    fn into_closed(self) -> Self::Closed;

    /// The body has stopped, because nobody wanted more.
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

/// A body that does not return: a loop without an end.
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
