//! How the error of a clean-up combines with the result of the body before it. The clean-ups are in a crate
//! above. The trait is here because only the crate that defines `Never` can distinguish it from all other
//! error types.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;

use crate::Never;

/// The error of a clean-up after a body that returned an `O`, in `using` and its like.
///
/// - If the clean-up cannot fail, its error is [`Never`], and the body returns any type.
/// - If it fails with a [`std::error::Error`], the body returns a `Result` whose error type it converts into,
///   as by `?`. If both fail, the body's error is the outcome, and the clean-up's error is reported.
/// - Or the body returns a plain value of a type in the list below, which becomes a `Result`. (The list
///   exists because stable Rust cannot express "any type but `Result`".)
#[diagnostic::on_unimplemented(
    message = "a clean-up that fails with `{Self}` does not fit a body that returns `{O}`",
    label = "the error `{Self}` of the clean-up would have nowhere to go",
    note = "let the body return `Ok(value)`, with an error type that is `From<{Self}>`",
    note = "`{Self}` itself must be a `std::error::Error`, or `Never` if the clean-up cannot fail"
)]
pub trait CleanupFailure<O>: Sized {
    /// The combined result.
    type Output;

    /// Returns the result of the body: the clean-up succeeded, or its error was reported.
    fn go_on(output: O) -> Self::Output;

    /// Combines the error with the result of the body. If the body has failed too, returns the body's error,
    /// and this one to be reported.
    fn fail(self, output: O) -> (Self::Output, Option<Self>);
}

impl<O> CleanupFailure<O> for Never {
    type Output = O;

    #[inline]
    fn go_on(output: O) -> O {
        output
    }

    fn fail(self, _: O) -> (O, Option<Self>) {
        self.absurd()
    }
}

impl<T, E: From<C>, C: core::error::Error> CleanupFailure<Result<T, E>> for C {
    type Output = Result<T, E>;

    #[inline]
    fn go_on(output: Result<T, E>) -> Result<T, E> {
        output
    }

    fn fail(self, output: Result<T, E>) -> (Result<T, E>, Option<Self>) {
        match output {
            Ok(_) => (Err(self.into()), None),
            failed => (failed, Some(self)),
        }
    }
}

macro_rules! plain {
    ($([$($generics:tt)*] $type:ty,)*) => {$(
        impl<$($generics)* C: core::error::Error> CleanupFailure<$type> for C {
            type Output = Result<$type, C>;

            #[inline]
            fn go_on(output: $type) -> Result<$type, C> {
                Ok(output)
            }

            fn fail(self, _: $type) -> (Result<$type, C>, Option<Self>) {
                (Err(self), None)
            }
        }
    )*};
}

/// For a body that never returns. The type `!` can only be named as the return type of such a function.
impl<C: core::error::Error> CleanupFailure<<fn() -> ! as Returns>::Output> for C {
    type Output = Result<Never, C>;

    fn go_on(output: <fn() -> ! as Returns>::Output) -> Result<Never, C> {
        output
    }

    fn fail(self, output: <fn() -> ! as Returns>::Output) -> (Result<Never, C>, Option<Self>) {
        output
    }
}

/// A function type, to name its return type.
#[doc(hidden)]
pub trait Returns {
    /// The return type.
    type Output;
}

impl<T> Returns for fn() -> T {
    type Output = T;
}

plain! {
    [] (), [] bool, [] char, [] f32, [] f64,
    [] u8, [] u16, [] u32, [] u64, [] u128, [] usize,
    [] i8, [] i16, [] i32, [] i64, [] i128, [] isize,
    ['a, T: ?Sized,] &'a T, ['a, T: ?Sized,] &'a mut T, ['a, T: ?Sized + ToOwned,] Cow<'a, T>,
    [] String, [T,] Option<T>, [T: ?Sized,] Box<T>, [T: ?Sized,] Arc<T>,
    [T,] Vec<T>, [T,] VecDeque<T>, [T, const N: usize,] [T; N], [K, V, S,] HashMap<K, V, S>, [K, V,] BTreeMap<K, V>,
    [A,] (A,), [A, B,] (A, B), [A, B, D,] (A, B, D), [A, B, D, E,] (A, B, D, E),
}
