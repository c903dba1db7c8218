//! `race((a, b, …))`: all at once, the first value wins.

use core::fmt;
use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll};

use convoke_core::{Never, StopReason};
use pin_project_lite::pin_project;

use super::branches::{Branches, Rooms, poll_all};
use super::group::{Group, Rule, Sort};

/// Runs futures with the same type of value at once inside the task until one of them has ended with one. Takes a tuple of up
/// to twelve, or a `Vec`.
///
/// The others are asked to stop, with [`StopReason::Lost`], and awaited, with their clean-up; a value that comes nevertheless is
/// dropped. Those that have not begun do not. A future that ends by the stopped door by itself is out of the race. Of a
/// vector only those are polled that were woken.
///
/// In a loop, what is to go on from one race to the next is a child of a scope: the branch awaits `&mut handle`, and losing
/// does not stop the child. A future that is only pinned outside of the loop is stopped in the first race that it loses.
///
/// - *Completes with* the value that came first; of several that are there at once, that of the first in order. Stopped, if
///   all of them were; so does an empty `Vec`.
/// - *If dropped*, the futures are dropped.
/// - *Runs on* the task, all of them in turn.
/// - *Panics* with a panic of any of them, when all have ended, even beside a value: a panic is never lost. And outside a task.
///
/// ```
/// use convoke::prelude::*;
/// use convoke::sender::prelude::*;
///
/// let outcome = block_on(async {
///     race((async { never().await }, async { "tortoise" })).await
/// });
/// assert_eq!(outcome, Outcome::Value("tortoise"));
/// ```
#[doc(alias = "select")]
pub fn race<B: Branches<First>>(futures: B) -> Race<B::Rooms, B::Last> {
    Race { rooms: futures.rooms(), group: Group::new() }
}

pin_project! {
    /// See [`race()`].
    #[must_use = "futures do nothing until they are awaited"]
    pub struct Race<R, L> {
        #[pin]
        rooms: R,
        group: Group<First, L>,
    }
}

/// The rule of [`race()`]: a value ends it, and so none is kept.
#[derive(Debug)]
pub struct First;

impl Rule for First {
    const REASON: StopReason = StopReason::Lost;
    const STOPPED_ENDS: bool = false;
    const EMPTY_IS_COMPLETE: bool = false;
    const PANIC_OUTRANKS: bool = true;
}

impl<T> Sort<T> for First {
    type Kept = Never;
    type Last = T;

    #[inline]
    fn sort(value: T) -> Result<Never, T> {
        Err(value)
    }
}

impl<R: Rooms<First, L>, L> Future for Race<R, L> {
    type Output = L;

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<L> {
        let this = self.project();
        match poll_all(this.rooms, this.group, cx) {
            Poll::Ready(Err(first)) => Poll::Ready(first),
            Poll::Ready(Ok(_)) => unreachable!("no value of a race is kept"),
            Poll::Pending => Poll::Pending,
        }
    }
}

impl<R, L> fmt::Debug for Race<R, L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Race").field("over", &self.group.over).finish_non_exhaustive()
    }
}
