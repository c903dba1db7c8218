//! `select! { value = future => expression, … }`: a [`race()`](super::race()) of futures with different values, and an
//! expression for each.
//!
//! The macro wraps the value of each branch in a [`Selected`], nested as deep as the branch is far from the first, so that
//! all have one type. When the race has returned, its futures are gone, and the expression of the winner runs in the
//! function around it: it may `return`, `break` and use `?`.

use core::future::{Future, IntoFuture};
use core::pin::Pin;
use core::task::{Context, Poll};

use convoke_core::Never;
use pin_project_lite::pin_project;

/// Runs futures at once inside the task, until one of them returns a value, and then the expression behind `=>` that
/// belongs to it. The futures may have different values; the expressions have one type.
///
/// It is [`race()`](crate::together::race()) with a syntax: before the expression runs, the other futures are asked to
/// stop, with [`StopReason::Lost`](convoke_core::StopReason::Lost), and awaited, with their clean-up; a value that they
/// return meanwhile is dropped. At least one and at most twelve branches: `pattern = future => expression`, separated by
/// commas. The pattern matches every value of the future.
///
/// - *Completes with* the value of the expression of the first future that returns one; if several are ready in one poll,
///   the first in order, unless the [budget](crate::budget) of the task was spent on the way. A future that stops by
///   itself leaves the race. Stopped, if all of them were stopped.
/// - *If dropped*, the futures are dropped.
/// - *Runs on* the task, one future at a time.
/// - *Panics* with the panic of any of the futures, when all have ended: no expression runs then. And outside a task.
///
/// All futures are made before the first one is polled. A branch that takes part only sometimes waits otherwise:
/// `_ = async { if ready { work.await } else { forever().await } } => …`. Work that goes on from one `select!` of a loop
/// to the next is a child of a scope, as [`race()`](crate::together::race()) explains.
///
/// ```
/// use std::time::Duration;
/// use convoke::prelude::*;
/// use convoke::sync::mpsc;
///
/// let (sender, mut receiver) = mpsc::channel::<u32>(4);
/// let outcome = block_on(async move {
///     scope(async |s| {
///         s.spawn(async move {
///             for number in 1..=3 {
///                 sender.send(number).await.expect("the receiver is there");
///             }
///         });
///         let mut sum = 0;
///         loop {
///             convoke::select! {
///                 received = receiver.recv() => match received {
///                     Some(number) => sum += number,
///                     None => break format!("the sum is {sum}"),
///                 },
///                 _ = sleep(Duration::from_secs(3600)) => {
///                     break String::from("no number for an hour");
///                 }
///             }
///         }
///     })
///     .await
/// });
/// assert_eq!(outcome, Outcome::Value(String::from("the sum is 6")));
/// ```
#[macro_export]
macro_rules! select {
    () => {
        ::core::compile_error!("`select!` needs a branch: `value = future => expression`")
    };
    (biased; $($branches:tt)*) => {
        ::core::compile_error!(
            "`select!` always prefers the first branch in order if several are ready: leave out `biased;`"
        )
    };
    // The branches, one by one: [what is parsed] then the depth of the next branch, then the rest.
    (@parse [$($parsed:tt)*] [$($depth:tt)*]) => {
        $crate::select!(@race [$($parsed)*] [$($depth)*])
    };
    (@parse [$($parsed:tt)*] [$($depth:tt)*] else => $($rest:tt)*) => {
        ::core::compile_error!(
            "`select!` has no `else` branch: every branch takes part until one of them returns a value"
        )
    };
    (@parse [$($parsed:tt)*] [$($depth:tt)*] $pattern:pat = $future:expr, if $($rest:tt)*) => {
        ::core::compile_error!(
            "`select!` has no guards: let the future wait if the condition does not hold, as \
             `async { if condition { future.await } else { forever().await } }`"
        )
    };
    (@parse [$($parsed:tt)*] [$($depth:tt)*] $pattern:pat = $future:expr => $body:block $(, $($rest:tt)*)?) => {
        $crate::select!(@parse [$($parsed)* ([$($depth)*] ($pattern) ($future) ($body))] [$($depth)* +] $($($rest)*)?)
    };
    (@parse [$($parsed:tt)*] [$($depth:tt)*] $pattern:pat = $future:expr => $body:block $($rest:tt)+) => {
        $crate::select!(@parse [$($parsed)* ([$($depth)*] ($pattern) ($future) ($body))] [$($depth)* +] $($rest)+)
    };
    (@parse [$($parsed:tt)*] [$($depth:tt)*] $pattern:pat = $future:expr => $body:expr $(, $($rest:tt)*)?) => {
        $crate::select!(@parse [$($parsed)* ([$($depth)*] ($pattern) ($future) ($body))] [$($depth)* +] $($($rest)*)?)
    };
    (@parse [$($parsed:tt)*] [$($depth:tt)*] $($rest:tt)+) => {
        ::core::compile_error!("expected a branch of `select!`: `value = future => expression`")
    };
    (@race [$(([$($depth:tt)*] ($pattern:pat) ($future:expr) ($body:expr)))+] [$($all:tt)+]) => {{
        // A branch that never returns has no value to wrap.
        #[allow(unreachable_code)]
        let selected = $crate::together::race(($(
            $crate::together::branch($future, |value| $crate::select!(@wrap [$($depth)*] value)),
        )+))
        .await;
        match selected {
            $(#[allow(unreachable_code)] $crate::select!(@wrap [$($depth)*] value) => {
                let $pattern = value;
                $body
            })+
            $crate::select!(@none [$($all)+] none) => $crate::together::no_branch(none),
        }
    }};
    (@none [] $value:ident) => { $value };
    (@none [+ $($depth:tt)*] $value:ident) => {
        $crate::together::Selected::Later($crate::select!(@none [$($depth)*] $value))
    };
    (@wrap [] $value:ident) => { $crate::together::Selected::This($value) };
    (@wrap [+ $($depth:tt)*] $value:ident) => {
        $crate::together::Selected::Later($crate::select!(@wrap [$($depth)*] $value))
    };
    ($($branches:tt)+) => {
        $crate::select!(@parse [] [] $($branches)+)
    };
}

/// Value of one of several branches: of this one, or of one of those behind it.
#[doc(hidden)]
#[derive(Debug)]
pub enum Selected<A, B> {
    This(A),
    Later(B),
}

/// Wraps the value of a branch. The type is opaque, so that the compiler's errors for a branch that is no future speak of the
/// branch, and not of the parts of a race.
#[doc(hidden)]
pub fn branch<F: IntoFuture, T>(future: F, wrap: fn(F::Output) -> T) -> impl Future<Output = T> {
    SelectBranch { future: future.into_future(), wrap }
}

/// Says that there is no branch behind the last one.
#[doc(hidden)]
pub fn no_branch<T>(none: Never) -> T {
    none.absurd()
}

pin_project! {
    /// Future of a branch of [`select!`](crate::select).
    struct SelectBranch<F: Future, T> {
        #[pin]
        future: F,
        wrap: fn(F::Output) -> T,
    }
}

impl<F: Future, T> Future for SelectBranch<F, T> {
    type Output = T;

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<T> {
        let this = self.project();
        this.future.poll(cx).map(this.wrap)
    }
}
