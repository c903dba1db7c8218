//! The error type of work that cannot fail. A type of our own instead of `Infallible`, so that compiler
//! messages about errors say `Never`.

use core::fmt;

/// A type without values: `Error = Never` means "cannot fail", and the compiler checks it.
///
/// It is deliberately not `Unpin`: an `await` tells by it senders that yield a value from those that yield a
/// `Result`, see [`AwaitError`](crate::AwaitError). It is not a `std::error::Error` either: that tells
/// clean-ups that cannot fail from those that can, see [`CleanupFailure`](crate::CleanupFailure).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Never {}

/// `Placeholder` does not implement `NeverImplemented`, so `Never` is not `Unpin`, and the compiler knows
/// that it never will be. A field that is not `Unpin` would not do: the type would not be empty, and the
/// standard library might make the field's type `Unpin`.
impl Unpin for Never where for<'a> Placeholder<'a>: NeverImplemented {}

trait NeverImplemented {}
struct Placeholder<'a>(#[expect(dead_code, reason = "it is there for the lifetime")] &'a ());

impl Never {
    /// Converts a value that cannot exist to any type: the function for `map_error(Never::absurd)`.
    pub fn absurd<T>(self) -> T {
        match self {}
    }

    /// Returns true if `E` has no values. Used to leave out code that only an error needs: a wrong `false`
    /// costs time, never correctness.
    pub const fn is<E>() -> bool {
        size_of::<Option<E>>() == 0
    }
}

impl fmt::Debug for Never {
    fn fmt(&self, _: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {}
    }
}

impl fmt::Display for Never {
    fn fmt(&self, _: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_types_without_values_are_never() {
        assert!(Never::is::<Never>());
        assert!(Never::is::<core::convert::Infallible>());
        assert!(!Never::is::<()>());
        assert!(!Never::is::<std::io::Error>());
        assert!(!Never::is::<&str>());
    }
}
