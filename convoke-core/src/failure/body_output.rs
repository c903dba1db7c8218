//! The outputs of bodies, and which of them are failures. Scopes, `using` and `ensure` ask it when their body has
//! returned.

use core::cell::{Cell, RefCell};
use core::cmp::{Ordering, Reverse};
use core::marker::PhantomData;
use core::mem::ManuallyDrop;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6};
use core::num::{NonZero, Saturating, Wrapping};
use core::ops::{Bound, ControlFlow, Range, RangeInclusive};
use core::pin::Pin;
use core::task::{Poll, Waker};
use core::time::Duration;
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap, HashMap, HashSet, LinkedList, VecDeque};
use std::ffi::{CString, OsString};
use std::path::PathBuf;
use std::process::{ExitCode, ExitStatus};
use std::rc::Rc;
use std::sync::{Arc, Mutex, OnceLock, RwLock, Weak};
use std::thread::ThreadId;
use std::time::{Instant, SystemTime};

use crate::{Env, ExecutorRef, Never, Outcome, Panic, StopReason, StopSource, StopToken};

/// Output of the body of a scope, of `using`, of `ensure`: says if it is a failure.
///
/// A body fails with what `?` returns early: with an `Err`, or with `None`. A failure of the body stops the
/// children of a scope, and tells a clean-up to roll back. Every other value is a success, also one that
/// contains a failure somewhere, as `Some(Err(..))` or a vector of results does.
///
/// It is implemented for the types of the standard library that bodies return. For a type of your own, one
/// line is enough:
///
/// ```
/// use convoke::prelude::*;
/// use convoke::scope::BodyOutput;
///
/// struct Summary { pages: u32 }
///
/// impl BodyOutput for Summary {} // Never a failure.
///
/// let outcome = block_on(async {
///     scope(async |s| {
///         let pages = s.spawn_future(async { 3 });
///         Summary { pages: pages.await }
///     })
///     .await
/// });
/// assert_eq!(outcome.unwrap().pages, 3);
/// ```
///
/// A type that has failures among its values says which:
///
/// ```
/// use convoke::scope::BodyOutput;
///
/// enum Reply { Accepted, Refused }
///
/// impl BodyOutput for Reply {
///     fn is_failure(&self) -> bool {
///         matches!(self, Reply::Refused)
///     }
/// }
/// # assert!(Reply::Refused.is_failure() && !Reply::Accepted.is_failure());
/// ```
///
/// For a type of another crate, return `Ok(value)` or `Some(value)`. Generic code adds the bound: `T:
/// BodyOutput`.
// A trait with a list, because stable Rust cannot tell "any type but `Result` and `Option`". Two ways without
// a bound were rejected. The name of a type (`type_name`) is documented as a diagnostic, and may change. A
// pair of functions, `using` and `try_using`, commits the transaction of a user who adds a `?` to the body
// and forgets to change the function; a missing bound is an error of the compiler.
#[diagnostic::on_unimplemented(
    message = "the body returns `{Self}`, and it is not known if that can be a failure",
    label = "`{Self}` is not a `BodyOutput`",
    note = "for a type of your own, `impl BodyOutput for {Self} {{}}` is enough, and says that it is never a failure",
    note = "for a type of another crate, return `Ok(value)` or `Some(value)`",
    note = "in generic code, add the bound `BodyOutput` to the type that the body returns"
)]
pub trait BodyOutput {
    /// Returns true if the body has failed with this value. By default no value is a failure.
    #[inline]
    fn is_failure(&self) -> bool {
        false
    }
}

impl<T, E> BodyOutput for Result<T, E> {
    #[inline]
    fn is_failure(&self) -> bool {
        self.is_err()
    }
}

impl<T> BodyOutput for Option<T> {
    #[inline]
    fn is_failure(&self) -> bool {
        self.is_none()
    }
}

/// A `Ready` is what its value is, because `?` returns an `Err` or a `None` in it early, too. `Pending` is no failure.
impl<T: BodyOutput> BodyOutput for Poll<T> {
    #[inline]
    fn is_failure(&self) -> bool {
        matches!(self, Self::Ready(value) if value.is_failure())
    }
}

/// A body that never returns: `T` is `!`, which stable Rust can name only as the return type of a function.
// The condition goes through `FnOnce`, because the compiler knows all its implementations for function
// pointers, also in other crates. With a trait of our own in its place (`<fn() -> ! as Returns>::Output`),
// every implementation of `BodyOutput` in another crate conflicts with this one.
#[diagnostic::do_not_recommend]
impl<T> BodyOutput for T where fn() -> !: FnOnce() -> T {}

macro_rules! never_failures {
    ($([$($generics:tt)*] $type:ty,)*) => {$(
        impl<$($generics)*> BodyOutput for $type {}
    )*};
}

never_failures! {
    [] (), [] bool, [] char, [] f32, [] f64,
    [] u8, [] u16, [] u32, [] u64, [] u128, [] usize,
    [] i8, [] i16, [] i32, [] i64, [] i128, [] isize,
    [T: ?Sized] &T, [T: ?Sized] &mut T, [T: ?Sized] *const T, [T: ?Sized] *mut T,
    [T: ?Sized] Box<T>, [T: ?Sized] Arc<T>, [T: ?Sized] Rc<T>, [T: ?Sized] Weak<T>, [P] Pin<P>,
    [T: ?Sized + ToOwned] Cow<'_, T>, [T: ?Sized] PhantomData<T>, [T: ?Sized] ManuallyDrop<T>,
    [] String, [] OsString, [] CString, [] PathBuf,
    [T, const N: usize] [T; N], [T] Vec<T>, [T] VecDeque<T>, [T] LinkedList<T>, [T] BinaryHeap<T>,
    [K, V, S] HashMap<K, V, S>, [K, V] BTreeMap<K, V>, [T, S] HashSet<T, S>, [T] BTreeSet<T>,
    [A] (A,), [A, B] (A, B), [A, B, C] (A, B, C), [A, B, C, D] (A, B, C, D), [A, B, C, D, E] (A, B, C, D, E),
    [A, B, C, D, E, F] (A, B, C, D, E, F), [A, B, C, D, E, F, G] (A, B, C, D, E, F, G),
    [A, B, C, D, E, F, G, H] (A, B, C, D, E, F, G, H),
    [T: ?Sized] Cell<T>, [T: ?Sized] RefCell<T>, [T: ?Sized] Mutex<T>, [T: ?Sized] RwLock<T>, [T] OnceLock<T>,
    [] Duration, [] Instant, [] SystemTime, [] Ordering, [T] Reverse<T>,
    [T] Range<T>, [T] RangeInclusive<T>, [T] Bound<T>,
    [] IpAddr, [] Ipv4Addr, [] Ipv6Addr, [] SocketAddr, [] SocketAddrV4, [] SocketAddrV6,
    [] ThreadId, [] ExitCode, [] ExitStatus, [] std::process::Output, [] std::io::Error, [] Waker,
    [T] Wrapping<T>, [T] Saturating<T>,
    // A value that says how a loop ended. `Break` is as good an end as `Continue`.
    [B, C] ControlFlow<B, C>,
    // The end of other work, which the body reports and has not failed with: `?` does not return it.
    [V, E] Outcome<V, E>,
    [] Never, [] Panic, [] StopReason, [] StopSource, [] StopToken, [] Env, [] ExecutorRef,
}

macro_rules! non_zero {
    ($($number:ty),*) => {$(impl BodyOutput for NonZero<$number> {})*};
}

// One by one: `NonZero<T>` asks for a bound on `T` that stable Rust cannot write.
non_zero!(u8, u16, u32, u64, u128, usize, i8, i16, i32, i64, i128, isize);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_and_none_are_failures() {
        assert!(Err::<(), ()>(()).is_failure());
        assert!(Err::<Never, u8>(0).is_failure());
        assert!(std::io::Result::<()>::Err(std::io::Error::other("x")).is_failure());
        assert!(None::<u8>.is_failure());
    }

    #[test]
    fn values_are_not_failures_whatever_they_contain() {
        assert!(!Ok::<u32, Never>(1).is_failure());
        assert!(!Ok::<Result<u8, u8>, u8>(Err(1)).is_failure());
        assert!(!Ok::<Option<u8>, u8>(None).is_failure());
        assert!(!Some(Err::<u8, u8>(1)).is_failure());
        assert!(!().is_failure() && !"text".is_failure() && !BodyOutput::is_failure(&&None::<u8>));
        assert!(!vec![None::<u8>].is_failure() && !(None::<u8>, 1).is_failure());
        assert!(!ControlFlow::<u8, u8>::Break(1).is_failure());
        assert!(!Outcome::<u8, u8>::Error(1).is_failure());
    }

    #[test]
    fn a_poll_fails_with_what_it_is_ready_with() {
        assert!(Poll::Ready(Err::<u8, u8>(1)).is_failure() && Poll::Ready(None::<u8>).is_failure());
        assert!(!Poll::Ready(Ok::<u8, u8>(1)).is_failure() && !Poll::Ready(()).is_failure());
        assert!(!Poll::<Result<u8, u8>>::Pending.is_failure());
    }

    #[test]
    fn one_line_is_enough_for_a_type_of_ones_own() {
        struct Mine;
        impl BodyOutput for Mine {}
        assert!(!Mine.is_failure());
    }
}
