//! `race((a, b, …))`: runs futures at once, and returns the first value.

use core::fmt;
use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll};

use convoke_core::raw::OutOfLine;
use convoke_core::{Never, StopReason};
use pin_project_lite::pin_project;

use super::branches::{BranchSlots, Branches, poll_all};
use super::group::{Group, Rule, Sort};

/// Runs futures with the same output at once inside the task, until one of them returns a value. Takes a
/// tuple of up to twelve futures, or a `Vec`.
///
/// Use this if all branches return one type. Use [`select!`](crate::select!) if each has its own, or code of its
/// own.
///
/// The others are asked to stop, with [`StopReason::Lost`], and awaited, with their clean-up, also those that
/// were not polled yet; a value that they return is dropped. A future that stops by itself leaves the race. In
/// a vector, only the futures that were woken are polled.
///
/// Work that goes on from one race of a loop to the next is started as a child of a scope: the branch awaits
/// `&mut handle`, and losing does not stop the child. A future that is only pinned outside the loop is
/// stopped by the first race it loses.
///
/// - *Completes with* the first value; if several futures are ready in one poll, with that of the first in
///   order, unless the [budget](crate::budget) of the task was spent on the way. Stopped, if all of them were stopped, or the `Vec` is empty.
/// - *If dropped*, the futures are dropped.
/// - *Runs on* the task, one future at a time.
/// - *Panics* with the panic of any of them, when all have ended, also if another has returned a value; and
///   outside a task.
///
/// ```
/// use convoke::prelude::*;
/// use convoke::task::forever;
///
/// let outcome = block_on(async {
///     race((async { forever().await }, async { "tortoise" })).await
/// });
/// assert_eq!(outcome, Outcome::Value("tortoise"));
/// ```
#[doc(alias = "select")]
pub fn race<B: Branches<First>>(futures: B) -> Race<B::Slots, B::Last> {
    Race { slots: futures.slots(), group: OutOfLine::new(Group::new()) }
}

pin_project! {
    /// Future of [`race()`].
    #[must_use = "futures do nothing until they are awaited"]
    pub struct Race<R, L> {
        #[pin]
        slots: R,
        group: OutOfLine<Group<First, L>>,
    }
}

/// Rule of [`race()`]: a value ends the group.
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

impl<R: BranchSlots<First, L>, L> Future for Race<R, L> {
    type Output = L;

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<L> {
        let this = self.project();
        match poll_all(this.slots, this.group, cx) {
            Poll::Ready(Err(first)) => Poll::Ready(first),
            Poll::Ready(Ok(_)) => unreachable!("every value ends a race, so that none is left to collect"),
            Poll::Pending => Poll::Pending,
        }
    }
}

impl<R, L> fmt::Debug for Race<R, L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Race").field("over", &self.group.progress.over).finish_non_exhaustive()
    }
}
