//! `try_join((a, b, …))`: all at once, all of their values, or the first error.

use core::fmt;
use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll};

use convoke_core::StopReason;
use convoke_core::raw::OutOfLine;
use pin_project_lite::pin_project;

use super::branches::{BranchSlots, Branches, poll_all};
use super::group::{Group, Rule, Sort};

/// Runs futures that return `Result`s at once inside the task, until all have ended. Takes a tuple of up to
/// twelve futures, or a `Vec`.
///
/// After the first error, panic or stop of a future the others are asked to stop and awaited, with their
/// clean-up, also those that were not polled yet. In a vector, only the futures that were woken are polled.
///
/// - *Completes with* `Ok` of the tuple or `Vec` of values, in the order of the futures; or with the first
///   error. Stopped, if one of them was stopped and none has failed.
/// - *If dropped*, the futures are dropped.
/// - *Runs on* the task, one future at a time. Use [`scope()`](crate::scope()) for parallel work.
/// - *Panics* with the panic of a future, if it came before any error, when all have ended; and outside a task.
///
/// ```
/// use convoke::prelude::*;
/// use convoke::task::forever;
///
/// async fn parse(text: &str) -> Result<u32, std::num::ParseIntError> {
///     text.parse()
/// }
/// async fn wait() -> Result<(), std::num::ParseIntError> {
///     forever().await
/// }
///
/// let outcome = block_on(async {
///     assert_eq!(try_join((parse("1"), parse("2"))).await, Ok((1, 2)));
///     // The future that waits forever is asked to stop.
///     assert!(try_join((wait(), parse("one"))).await.is_err());
///     try_join(vec![parse("3"), parse("4")]).await
/// });
/// assert_eq!(outcome, Outcome::Value(Ok(vec![3, 4])));
/// ```
pub fn try_join<B: Branches<AllOk>>(futures: B) -> TryJoin<B::Slots, B::Last> {
    TryJoin { slots: futures.slots(), group: OutOfLine::new(Group::new()) }
}

pin_project! {
    /// Future of [`try_join()`].
    #[must_use = "futures do nothing until they are awaited"]
    pub struct TryJoin<R, L> {
        #[pin]
        slots: R,
        group: OutOfLine<Group<AllOk, L>>,
    }
}

/// Rule of [`try_join()`]: a value is part of the output, an error ends the group.
#[derive(Debug)]
pub struct AllOk;

impl Rule for AllOk {
    const REASON: StopReason = StopReason::Sibling;
    const STOPPED_ENDS: bool = true;
    const EMPTY_IS_COMPLETE: bool = true;
    const PANIC_OUTRANKS: bool = false;
}

impl<T, E> Sort<Result<T, E>> for AllOk {
    type Kept = T;
    type Last = E;

    #[inline]
    fn sort(value: Result<T, E>) -> Result<T, E> {
        value
    }
}

impl<R: BranchSlots<AllOk, L>, L> Future for TryJoin<R, L> {
    type Output = Result<R::Output, L>;

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        poll_all(this.slots, this.group, cx)
    }
}

impl<R, L> fmt::Debug for TryJoin<R, L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TryJoin").field("over", &self.group.progress.over).finish_non_exhaustive()
    }
}
