//! The budget of a task: how many awaits may be ready at once before it lets others run.
//!
//! A task that awaits something which is ready goes on without giving its thread away. So that a loop of such
//! awaits does not keep the thread for ever, each poll of a task has a budget of [`PER_POLL`] awaits. Every
//! future of Convoke takes one when it completes. When the budget is spent, the next one yields: the task goes
//! behind the others of its executor, and the executor checks timers, I/O and signals. A new poll of the task
//! by its executor begins with a full budget; nothing else renews it.
//!
//! Programs need nothing of this module. Authors of futures that can be ready at once, such as a queue of
//! their own, call [`poll_proceed`]. [`unconstrained()`] lifts the limit for a future that must not yield.

use core::fmt;
use core::future::{Future, IntoFuture};
use core::marker::PhantomData;
use core::pin::Pin;
use core::task::{Context, Poll};

use convoke_core::raw::budget;
use pin_project_lite::pin_project;

pub use convoke_core::raw::budget::PER_POLL;

/// Returns the right to complete in this poll; or `Pending`, if the budget of the task is spent. Then the task
/// was woken, and is polled again after others have run.
///
/// Call it before the future takes anything that would be lost, and call [`Permission::spend`] when the future
/// completes. A poll that does not complete costs nothing. Outside of tasks it always returns the right.
///
/// ```
/// use std::cell::RefCell;
/// use std::collections::VecDeque;
/// use std::future::poll_fn;
/// use std::task::{Poll, ready};
///
/// use convoke::prelude::*;
/// use convoke::task::budget::{self, poll_proceed};
///
/// /// Takes a number of a queue that is never empty in this example.
/// async fn take(queue: &RefCell<VecDeque<u32>>) -> Option<u32> {
///     poll_fn(|cx| {
///         let permission = ready!(poll_proceed(cx));
///         let number = queue.borrow_mut().pop_front();
///         permission.spend();
///         Poll::Ready(number)
///     })
///     .await
/// }
///
/// let outcome = block_on(async {
///     let queue = RefCell::new((0..2 * budget::PER_POLL).collect());
///     let mut taken = 0;
///     // Yields once on the way, so that others can run.
///     while take(&queue).await.is_some() {
///         taken += 1;
///     }
///     taken
/// });
/// assert_eq!(outcome, Outcome::Value(2 * budget::PER_POLL));
/// ```
#[inline]
pub fn poll_proceed(cx: &mut Context<'_>) -> Poll<Permission> {
    if budget::may_proceed(cx) { Poll::Ready(Permission(PhantomData)) } else { Poll::Pending }
}

/// Returns true if the running task has budget left in this poll. True outside of tasks.
#[inline]
pub fn has_remaining() -> bool {
    budget::has_left()
}

/// The right of a future to complete in this poll. Returned by [`poll_proceed`]. Dropping it costs nothing.
#[must_use = "call `spend` when the future completes"]
pub struct Permission(PhantomData<*const ()>);

impl Permission {
    /// Takes one from the budget of the task. Call it when the future completes.
    #[inline]
    pub fn spend(self) {
        budget::spend();
    }
}

impl fmt::Debug for Permission {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Permission")
    }
}

/// Runs a future without a budget: the awaits in it never yield because they were ready too often. For short
/// work that must not be interleaved with other tasks. A loop in it that is always ready starves its thread.
///
/// - *Completes with* what the future returns.
/// - *If dropped*, the future is dropped.
/// - *Runs on* the task that awaits it.
///
/// ```
/// use convoke::prelude::*;
/// use convoke::sync::Mutex;
/// use convoke::task::budget::{self, unconstrained};
///
/// let outcome = block_on(async {
///     let lock = Mutex::new(0);
///     unconstrained(async {
///         for _ in 0..2 * budget::PER_POLL {
///             *lock.lock().await += 1;
///         }
///     })
///     .await;
///     lock.into_inner()
/// });
/// assert_eq!(outcome, Outcome::Value(2 * budget::PER_POLL));
/// ```
pub fn unconstrained<F: IntoFuture>(future: F) -> Unconstrained<F::IntoFuture> {
    Unconstrained { future: future.into_future() }
}

pin_project! {
    /// Future of [`unconstrained()`].
    #[derive(Debug)]
    #[must_use = "futures do nothing until they are awaited"]
    pub struct Unconstrained<F> {
        #[pin]
        future: F,
    }
}

impl<F: Future> Future for Unconstrained<F> {
    type Output = F::Output;

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let _unlimited = budget::unlimited();
        self.project().future.poll(cx)
    }
}
