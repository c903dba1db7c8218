//! How work ends: with a value, an error, a stop or a panic. Every simple adaptor is one of the functions
//! here.

use core::fmt;

use crate::{Never, Panic};

/// The end of a piece of work: a value, an error, a stop or a panic. Work always ends with exactly one of
/// them.
///
/// The combinators that take a closure catch its panic. The outcome is then [`Panicked`].
///
/// ```
/// use convoke::Outcome;
///
/// let outcome: Outcome<u32, String> = Outcome::Value(20);
/// assert_eq!(outcome.map(|v| v + 1), Outcome::Value(21));
///
/// let stopped: Outcome<u32, String> = Outcome::Stopped;
/// assert_eq!(stopped.map(|v| v + 1), Outcome::Stopped);
/// ```
#[must_use = "an outcome may be an error, a stop or a panic that has to be handled"]
#[derive(Debug)]
pub enum Outcome<V, E = Never> {
    /// The work is done.
    Value(V),
    /// The work failed.
    Error(E),
    /// The work honoured a request to stop.
    Stopped,
    /// The work panicked.
    Panicked(Panic),
}

use Outcome::{Error, Panicked, Stopped, Value};

impl<V, E> Outcome<V, E> {
    /// Calls `f`. Returns its value, or its panic.
    #[inline]
    pub fn catch(f: impl FnOnce() -> V) -> Self {
        match Panic::catch(f) {
            Ok(value) => Value(value),
            Err(panic) => Panicked(panic),
        }
    }

    /// Maps the value with `f`.
    #[inline]
    pub fn map<T>(self, f: impl FnOnce(V) -> T) -> Outcome<T, E> {
        self.and_then(|value| Value(f(value)))
    }

    /// Maps the error with `f`.
    #[inline]
    pub fn map_error<T>(self, f: impl FnOnce(E) -> T) -> Outcome<V, T> {
        self.or_else(|error| Error(f(error)))
    }

    /// Replaces a value by the outcome of `f`. The other outcomes stay as they are.
    #[inline]
    pub fn and_then<T>(self, f: impl FnOnce(V) -> Outcome<T, E>) -> Outcome<T, E> {
        match self {
            Value(value) => Panic::catch(|| f(value)).unwrap_or_else(Panicked),
            Error(error) => Error(error).after_drop_of(f),
            Stopped => Stopped.after_drop_of(f),
            Panicked(panic) => Panicked(panic).after_drop_of(f),
        }
    }

    /// Replaces an error by the outcome of `f`. The other outcomes stay as they are.
    #[inline]
    pub fn or_else<T>(self, f: impl FnOnce(E) -> Outcome<V, T>) -> Outcome<V, T> {
        match self {
            Value(value) => Value(value).after_drop_of(f),
            Error(error) => Panic::catch(|| f(error)).unwrap_or_else(Panicked),
            Stopped => Stopped.after_drop_of(f),
            Panicked(panic) => Panicked(panic).after_drop_of(f),
        }
    }

    /// Replaces a stop by the outcome of `f`. The other outcomes stay as they are.
    #[inline]
    pub fn or_stopped(self, f: impl FnOnce() -> Outcome<V, E>) -> Outcome<V, E> {
        match self {
            Stopped => Panic::catch(f).unwrap_or_else(Panicked),
            other => other.after_drop_of(f),
        }
    }

    /// Drops `value` and returns this outcome, or the panic of the destructor.
    #[inline]
    pub fn after_drop_of<T>(self, value: T) -> Self {
        match Panic::of_drop(value) {
            None => self,
            Some(panic) => self.or_panic(panic),
        }
    }

    /// Replaces this outcome by `panic`, unless it is a panic already.
    #[cold]
    pub fn or_panic(self, panic: Panic) -> Self {
        if self.is_panicked() {
            return self;
        }
        // Only one panic can be reported; a second one, of this destructor, is discarded.
        drop(Panic::of_drop(self));
        Panicked(panic)
    }

    /// Returns the value, or `None` for every other outcome.
    pub fn value(self) -> Option<V> {
        match self {
            Value(value) => Some(value),
            _ => None,
        }
    }

    /// Returns the error, or `None` for every other outcome.
    pub fn error(self) -> Option<E> {
        match self {
            Error(error) => Some(error),
            _ => None,
        }
    }

    /// Returns the value, or a [`Failure`] that says which of the other three outcomes it was.
    ///
    /// ```
    /// use convoke::Outcome;
    /// use convoke::task::Failure;
    ///
    /// type Parsed = Outcome<u32, std::num::ParseIntError>;
    ///
    /// fn main_of_a_program(outcome: Parsed) -> Result<u32, Box<dyn std::error::Error>> {
    ///     Ok(outcome.into_result()?)
    /// }
    /// let error = main_of_a_program(Outcome::Stopped).unwrap_err();
    /// assert_eq!(error.to_string(), "stopped before it was done");
    /// ```
    pub fn into_result(self) -> Result<V, Failure<E>> {
        match self {
            Value(value) => Ok(value),
            Error(error) => Err(Failure::Error(error)),
            Stopped => Err(Failure::Stopped),
            Panicked(panic) => Err(Failure::Panicked(panic)),
        }
    }

    /// Moves the error into the value, as a `Result`, as the adaptor `into_result` does.
    #[inline]
    pub fn error_as_value(self) -> Outcome<Result<V, E>> {
        match self {
            Value(value) => Value(Ok(value)),
            Error(error) => Value(Err(error)),
            Stopped => Stopped,
            Panicked(panic) => Panicked(panic),
        }
    }

    /// Turns a stop into the value `None`, as the adaptor `stopped_as_option` does.
    #[inline]
    pub fn stopped_as_option(self) -> Outcome<Option<V>, E> {
        match self {
            Value(value) => Value(Some(value)),
            Stopped => Value(None),
            Error(error) => Error(error),
            Panicked(panic) => Panicked(panic),
        }
    }

    /// Resumes the panic on this thread if the outcome is one, else returns the outcome.
    #[inline]
    pub fn resume_panic(self) -> Self {
        match self {
            Panicked(panic) => panic.resume(),
            other => other,
        }
    }

    /// Returns true if the work ended with a value.
    pub const fn is_value(&self) -> bool {
        matches!(self, Value(_))
    }

    /// Returns true if the work ended with an error.
    pub const fn is_error(&self) -> bool {
        matches!(self, Error(_))
    }

    /// Returns true if the work was stopped.
    pub const fn is_stopped(&self) -> bool {
        matches!(self, Stopped)
    }

    /// Returns true if the work panicked.
    pub const fn is_panicked(&self) -> bool {
        matches!(self, Panicked(_))
    }

    /// Returns the value.
    ///
    /// # Panics
    /// For every other outcome. A panic of the work is resumed with its own payload.
    #[track_caller]
    pub fn unwrap(self) -> V
    where
        E: fmt::Debug,
    {
        match self {
            Value(value) => value,
            Error(error) => panic!("called `Outcome::unwrap` on an error: {error:?}"),
            Stopped => panic!("called `Outcome::unwrap` on work that was stopped"),
            Panicked(panic) => panic.resume(),
        }
    }

    /// Returns the value, or `other` for every other outcome.
    pub fn value_or(self, other: V) -> V {
        self.value().unwrap_or(other)
    }
}

impl<V> Outcome<V, Never> {
    /// Converts an outcome that cannot be an error to any error type.
    #[inline]
    pub fn may_fail<E>(self) -> Outcome<V, E> {
        self.map_error(Never::absurd)
    }
}

impl<V, E> Outcome<Result<V, E>, Never> {
    /// Splits a `Result` into value and error, as the adaptor `transpose` does.
    #[inline]
    pub fn transpose(self) -> Outcome<V, E> {
        match self {
            Value(Ok(value)) => Value(value),
            Value(Err(error)) => Error(error),
            Error(never) => never.absurd(),
            Stopped => Stopped,
            Panicked(panic) => Panicked(panic),
        }
    }
}

impl<V, E> From<Result<V, E>> for Outcome<V, E> {
    fn from(result: Result<V, E>) -> Self {
        match result {
            Ok(value) => Value(value),
            Err(error) => Error(error),
        }
    }
}

impl<V, E> From<Panic> for Outcome<V, E> {
    fn from(panic: Panic) -> Self {
        Panicked(panic)
    }
}

/// Compares two panics by their messages: payloads have no other equality.
impl<V: PartialEq, E: PartialEq> PartialEq for Outcome<V, E> {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Value(a), Value(b)) => a == b,
            (Error(a), Error(b)) => a == b,
            (Stopped, Stopped) => true,
            (Panicked(a), Panicked(b)) => a.message() == b.message(),
            _ => false,
        }
    }
}

/// The three outcomes other than a value: the `Err` of [`Outcome::into_result`].
#[derive(Debug)]
pub enum Failure<E> {
    /// The work failed.
    Error(E),
    /// The work was stopped.
    Stopped,
    /// The work panicked.
    Panicked(Panic),
}

impl<E: fmt::Display> fmt::Display for Failure<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Error(error) => error.fmt(f),
            Self::Stopped => f.write_str("stopped before it was done"),
            Self::Panicked(panic) => panic.fmt(f),
        }
    }
}

impl<E: core::error::Error + 'static> core::error::Error for Failure<E> {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        match self {
            Self::Error(error) => Some(error),
            Self::Stopped => None,
            Self::Panicked(panic) => Some(panic),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Out = Outcome<i32, &'static str>;

    fn all_four() -> [Out; 4] {
        [Value(1), Error("e"), Stopped, Panicked(Panic::new("p"))]
    }

    #[test]
    fn each_combinator_changes_its_own_outcome_only() {
        let each = |f: fn(Out) -> Out| all_four().map(f);
        assert_eq!(each(|o| o.map(|v| v + 1)), [Value(2), Error("e"), Stopped, Panicked(Panic::new("p"))]);
        assert_eq!(
            each(|o| o.map_error(|_| "f")),
            [Value(1), Error("f"), Stopped, Panicked(Panic::new("p"))]
        );
        assert_eq!(
            each(|o| o.and_then(|_| Stopped)),
            [Stopped, Error("e"), Stopped, Panicked(Panic::new("p"))]
        );
        assert_eq!(
            each(|o| o.or_else(|_| Value(9))),
            [Value(1), Value(9), Stopped, Panicked(Panic::new("p"))]
        );
        assert_eq!(
            each(|o| o.or_stopped(|| Value(9))),
            [Value(1), Error("e"), Value(9), Panicked(Panic::new("p"))]
        );
    }

    #[test]
    fn a_panic_in_a_combinator_becomes_the_outcome() {
        assert_eq!(Out::Value(1).map(|_| -> i32 { panic!("m") }), Panicked(Panic::new("m")));
        assert_eq!(Out::Error("e").or_else(|_| -> Out { panic!("o") }), Panicked(Panic::new("o")));
        assert_eq!(Out::Stopped.or_stopped(|| panic!("s")), Panicked(Panic::new("s")));
    }

    #[test]
    fn results_go_in_and_out() {
        assert_eq!(Out::from(Ok(3)), Value(3));
        assert_eq!(Out::from(Err("no")), Error("no"));
        for outcome in all_four() {
            let again = match outcome.error_as_value().transpose().into_result() {
                Ok(value) => Value(value),
                Err(Failure::Error(error)) => Error(error),
                Err(Failure::Stopped) => Stopped,
                Err(Failure::Panicked(panic)) => Panicked(panic),
            };
            assert!(all_four().contains(&again));
        }
        assert!(matches!(Out::Stopped.into_result(), Err(Failure::Stopped)));
    }

    #[test]
    #[should_panic(expected = "called `Outcome::unwrap` on work that was stopped")]
    fn unwrapping_a_stop_says_so() {
        Out::Stopped.unwrap();
    }
}
