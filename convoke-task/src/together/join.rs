//! `join((a, b, …))`: runs futures at once, and returns all their values.

use core::fmt;
use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll};

use convoke_core::raw::OutOfLine;
use convoke_core::{Never, StopReason};
use pin_project_lite::pin_project;

use super::branches::{BranchSlots, Branches, poll_all};
use super::group::{Group, Rule, Sort};

/// Runs futures at once inside the task, until all have ended. Takes a tuple of up to twelve futures, or a
/// `Vec`. Senders count as futures.
///
/// If one of them is stopped or panics, the others are asked to stop and awaited, also those that were not
/// polled yet: they may own resources to close. In a vector, only the futures that were woken are polled.
///
/// - *Completes with* the tuple or `Vec` of values, in the order of the futures. Stopped, if one of them was
///   stopped.
/// - *If dropped*, the futures are dropped.
/// - *Runs on* the task, one future at a time. Use [`scope()`](crate::scope()) for parallel work.
/// - *Panics* with the first panic of a future, when all have ended; and outside a task.
///
/// ```
/// use convoke::prelude::*;
///
/// async fn length(text: &str) -> usize {
///     checkpoint().await;
///     text.len()
/// }
///
/// let outcome = block_on(async {
///     let text = String::from("borrowed");
///     let both = join((length(&text), async { "sent" })).await;
///     let all = join((0..3).map(|n| length(&text[n..])).collect::<Vec<_>>()).await;
///     (both, all)
/// });
/// assert_eq!(outcome, Outcome::Value(((8, "sent"), vec![8, 7, 6])));
/// ```
pub fn join<B: Branches<All, Last = Never>>(futures: B) -> Join<B::Slots> {
    Join { slots: futures.slots(), group: OutOfLine::new(Group::new()) }
}

pin_project! {
    /// Future of [`join()`].
    #[must_use = "futures do nothing until they are awaited"]
    pub struct Join<R> {
        #[pin]
        slots: R,
        group: OutOfLine<Group<All, Never>>,
    }
}

/// Rule of [`join()`]: every value is part of the output.
#[derive(Debug)]
pub struct All;

impl Rule for All {
    const REASON: StopReason = StopReason::Sibling;
    const STOPPED_ENDS: bool = true;
    const EMPTY_IS_COMPLETE: bool = true;
    const PANIC_OUTRANKS: bool = false;
}

impl<T> Sort<T> for All {
    type Kept = T;
    type Last = Never;

    #[inline]
    fn sort(value: T) -> Result<T, Never> {
        Ok(value)
    }
}

impl<R: BranchSlots<All, Never>> Future for Join<R> {
    type Output = R::Output;

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<R::Output> {
        let this = self.project();
        poll_all(this.slots, this.group, cx).map(|all| all.unwrap_or_else(|never| never.absurd()))
    }
}

impl<R> fmt::Debug for Join<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Join").field("over", &self.group.progress.over).finish_non_exhaustive()
    }
}
