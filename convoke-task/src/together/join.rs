//! `join((a, b, …))`: all at once, all of their values.

use core::fmt;
use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll};

use convoke_core::{Never, StopReason};
use pin_project_lite::pin_project;

use super::branches::{Branches, Rooms, poll_all};
use super::group::{Group, Rule, Sort};

/// Runs futures at once inside the task, and ends when all of them have. Takes a tuple of up to twelve, or a `Vec`; senders
/// may be among them.
///
/// If one of them ends by the stopped door, or panics, the others are asked to stop and awaited; those that have not begun do
/// not. Of a vector only those are polled that were woken.
///
/// - *Completes with* the tuple of values, or the `Vec` of them, in the order of the futures. Stopped, if one of them was.
/// - *If dropped*, the futures are dropped.
/// - *Runs on* the task, all of them in turn. For parallel work there is `scope`.
/// - *Panics* with the first panic of a future, when all have ended; and outside a task.
///
/// ```
/// use convoke::prelude::*;
/// use convoke::sender::prelude::*;
///
/// async fn length(text: &str) -> usize {
///     checkpoint().await;
///     text.len()
/// }
///
/// let outcome = block_on(async {
///     let text = String::from("borrowed");
///     let both = join((length(&text), just("sent"))).await;
///     let all = join((0..3).map(|n| length(&text[n..])).collect::<Vec<_>>()).await;
///     (both, all)
/// });
/// assert_eq!(outcome, Outcome::Value(((8, "sent"), vec![8, 7, 6])));
/// ```
pub fn join<B: Branches<All, Last = Never>>(futures: B) -> Join<B::Rooms> {
    Join { rooms: futures.rooms(), group: Group::new() }
}

pin_project! {
    /// See [`join()`].
    #[must_use = "futures do nothing until they are awaited"]
    pub struct Join<R> {
        #[pin]
        rooms: R,
        group: Group<All, Never>,
    }
}

/// The rule of [`join()`]: all values are kept.
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

impl<R: Rooms<All, Never>> Future for Join<R> {
    type Output = R::Output;

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<R::Output> {
        let this = self.project();
        poll_all(this.rooms, this.group, cx).map(|all| all.unwrap_or_else(|never| never.absurd()))
    }
}

impl<R> fmt::Debug for Join<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Join").field("over", &self.group.over).finish_non_exhaustive()
    }
}
