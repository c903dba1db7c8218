//! What bodies return, and what becomes of it if closing fails.

use core::num;
use core::time::Duration;
use std::borrow::Cow;
use std::boxed::Box;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Instant;

use convoke_core::{AwaitError, FailsAs, Never};

/// What the body of a [`using`](super::using) returns, where closing fails with `C`.
///
/// - A `Result<T, E>` stays one. The error of the close becomes its `E` as `?` would have it, unless the body has failed
///   itself: then that is the outcome, and the other is reported to the [hook](super::set_cleanup_hook).
/// - A plain value stays one if closing cannot fail, and becomes a `Result<T, C>` if it can.
///
/// Stable Rust cannot tell "any type but `Result`", so plain values are those of the list below. A body that has something else to
/// return returns it in `Ok`, or in a tuple.
#[diagnostic::on_unimplemented(
    message = "a body whose clean-up may fail with `{C}` cannot return `{Self}`",
    label = "this body returns `{Self}`",
    note = "return `Ok(value)`, with an error type that `{C}` turns into by `?` (any, if that is `Never`)",
    note = "or return a plain value of the standard library: a number, a string, a collection, a tuple"
)]
pub trait BodyOutput<C>: Sized {
    /// What `using` completes with.
    type Output;

    /// Whether the body has failed.
    fn is_error(&self) -> bool;

    /// It goes on as it is: closing went well, or has already been reported.
    fn go_on(self) -> Self::Output;

    /// Closing has failed. If the body has too, that goes on, and the error of the close is handed back to be reported.
    fn close_failed(self, error: C) -> (Self::Output, Option<C>);
}

impl<T, E, C: FailsAs<E>> BodyOutput<C> for Result<T, E> {
    type Output = Self;

    fn is_error(&self) -> bool {
        self.is_err()
    }

    fn go_on(self) -> Self {
        self
    }

    fn close_failed(self, error: C) -> (Self, Option<C>) {
        match self {
            Ok(_) => (Err(error.fail_as()), None),
            failed => (failed, Some(error)),
        }
    }
}

macro_rules! plain {
    ($([$($generics:tt)*] $type:ty,)*) => {$(
        impl<$($generics)* C: AwaitError> BodyOutput<C> for $type {
            type Output = C::Output<Self>;

            fn is_error(&self) -> bool {
                false
            }

            fn go_on(self) -> C::Output<Self> {
                C::value(self)
            }

            fn close_failed(self, error: C) -> (C::Output<Self>, Option<C>) {
                (error.error(), None)
            }
        }
    )*};
}

plain! {
    [] (), [] Never, [] bool, [] char, [] f32, [] f64,
    [] u8, [] u16, [] u32, [] u64, [] u128, [] usize,
    [] i8, [] i16, [] i32, [] i64, [] i128, [] isize,
    [] num::NonZeroU32, [] num::NonZeroU64, [] num::NonZeroUsize,
    [] String, [] Duration, [] Instant,
    ['a, T: ?Sized,] &'a T, ['a, T: ?Sized,] &'a mut T, ['a, T: ?Sized + ToOwned,] Cow<'a, T>,
    [T,] Option<T>, [T: ?Sized,] Box<T>, [T: ?Sized,] Arc<T>, [T: ?Sized,] Rc<T>,
    [T,] Vec<T>, [T,] VecDeque<T>, [T, const N: usize,] [T; N],
    [K, V, S,] HashMap<K, V, S>, [K, V,] BTreeMap<K, V>,
    [A,] (A,), [A, B,] (A, B), [A, B, D,] (A, B, D), [A, B, D, E,] (A, B, D, E),
}
