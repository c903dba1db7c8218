//! The error type of work that cannot fail. A type of our own and not `Infallible`, so that compiler
//! messages about the error door say `Never`.

use core::fmt;

/// A type without values: `Error = Never` means "cannot fail", and the compiler checks it.
///
/// It is not `Unpin`, on purpose: by that an `await` tells the senders that yield a value from those that yield a `Result`, see
/// [`AwaitError`](crate::AwaitError). Nor is it a `std::error::Error`: by that clean-ups that cannot fail are told from those
/// that can, see [`CleanupFailure`](crate::CleanupFailure).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Never {}

/// Nobody is `Absent`: so `Never` is `Unpin` in no case, and the compiler knows that it will never be. A field that is not
/// `Unpin` would not do: the type would not be empty, and the standard library might change its mind about the field.
impl Unpin for Never where for<'a> Nobody<'a>: Absent {}

trait Absent {}
struct Nobody<'a>(#[expect(dead_code, reason = "it is there for the lifetime")] &'a ());

impl Never {
    /// Turns what cannot exist into anything: the closure for `map_error(Never::absurd)`.
    pub fn absurd<T>(self) -> T {
        match self {}
    }

    /// Whether `E` has no values. Used to leave out work that only an error would need; a wrong `false`
    /// costs time and never correctness.
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
