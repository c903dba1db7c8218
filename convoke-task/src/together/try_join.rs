//! `try_join((a, b, …))`: all at once, all of their values, or the first error.

use core::fmt;
use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll};

use convoke_core::StopReason;
use pin_project_lite::pin_project;

use super::branches::{Branches, Rooms, poll_all};
use super::group::{Group, Rule, Sort};

/// Runs futures of `Result`s at once inside the task, and ends when all of them have. Takes a tuple of up to twelve, or a `Vec`.
///
/// The first that fails, panics or is stopped has the others asked to stop; they are awaited, with their clean-up, and those
/// that have not begun do not. Of a vector only those are polled that were woken.
///
/// - *Completes with* `Ok` of the tuple of values, or of the `Vec` of them, in the order of the futures; with the error that
///   came first; or stopped, if one of them was and none has failed.
/// - *If dropped*, the futures are dropped.
/// - *Runs on* the task, all of them in turn. For parallel work there is `scope`.
/// - *Panics* with the panic of a future that came before any error, when all have ended; and outside a task.
///
/// ```
/// use convoke::prelude::*;
/// use convoke::sender::prelude::*;
///
/// async fn parse(text: &str) -> Result<u32, std::num::ParseIntError> {
///     text.parse()
/// }
/// async fn wait() -> Result<(), std::num::ParseIntError> {
///     Ok(never().await)
/// }
///
/// let outcome = block_on(async {
///     assert_eq!(try_join((parse("1"), parse("2"))).await, Ok((1, 2)));
///     // The one that would wait for ever is asked to stop.
///     assert!(try_join((wait(), parse("one"))).await.is_err());
///     try_join(vec![parse("3"), parse("4")]).await
/// });
/// assert_eq!(outcome, Outcome::Value(Ok(vec![3, 4])));
/// ```
pub fn try_join<B: Branches<AllOk>>(futures: B) -> TryJoin<B::Rooms, B::Last> {
    TryJoin { rooms: futures.rooms(), group: Group::new() }
}

pin_project! {
    /// See [`try_join()`].
    #[must_use = "futures do nothing until they are awaited"]
    pub struct TryJoin<R, L> {
        #[pin]
        rooms: R,
        group: Group<AllOk, L>,
    }
}

/// The rule of [`try_join()`]: values are kept, an error ends it.
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

impl<R: Rooms<AllOk, L>, L> Future for TryJoin<R, L> {
    type Output = Result<R::Output, L>;

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        poll_all(this.rooms, this.group, cx)
    }
}

impl<R, L> fmt::Debug for TryJoin<R, L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TryJoin").field("over", &self.group.over).finish_non_exhaustive()
    }
}
