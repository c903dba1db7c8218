//! The error type of work that cannot fail. A type of our own and not `Infallible`, so that compiler
//! messages about the error door say `Never`.

use core::fmt;

/// A type without values: `Error = Never` means "cannot fail", and the compiler checks it.
///
/// It is not a `std::error::Error`, on purpose: by that an `await` tells the senders that yield a value from those that
/// yield a `Result`, see [`AwaitError`](crate::AwaitError).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Never {}

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
