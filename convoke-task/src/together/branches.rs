//! The argument of `join`, `try_join` and `race`: a tuple of futures, or a vector. And the poll that they
//! have in common.

use core::pin::Pin;
use core::task::{Context, Poll};

use convoke_core::raw::{Frame, budget};

use super::group::{End, Group, Rule};
use crate::region::pass_on_stop;

/// Argument of [`join`](super::join()), [`try_join`](super::try_join()) and [`race`](super::race()): a tuple
/// of up to twelve futures, or a vector. Types that are `IntoFuture` count as futures.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a tuple or a `Vec` of futures that can run together",
    label = "expected a tuple of up to twelve futures, or a `Vec` of futures",
    note = "for `try_join` each is a future of a `Result`, and all have the same error type; for `race` all have the same \
            type of value"
)]
pub trait Branches<M: Rule>: Sized {
    /// Storage for the running futures.
    type Rooms: Rooms<M, Self::Last>;
    /// Value that ends the group early: an error, or the value that wins a race.
    type Last;

    #[doc(hidden)]
    fn rooms(self) -> Self::Rooms;
}

/// Storage for futures that run together.
///
/// The futures of `join`, `try_join` and `race` are generic over this trait and not over [`Branches`].
/// Otherwise they would be `Send` only if two types are equal, and the compiler, which erases lifetimes
/// inside an `async` block, cannot prove that.
pub trait Rooms<M: Rule, L> {
    /// Output of all of them together.
    type Output;

    /// Polls the futures that need it. Returns true if all have ended.
    #[doc(hidden)]
    fn poll(self: Pin<&mut Self>, group: &mut Group<M, L>, cx: &mut Context<'_>) -> bool;

    /// Takes the output, if every future has contributed to it.
    #[doc(hidden)]
    fn take(self: Pin<&mut Self>) -> Option<Self::Output>;
}

/// Polls all branches. Completes with the output of all, or with the value that ended them early; otherwise
/// stops the task.
pub(super) fn poll_all<M: Rule, R: Rooms<M, L>, L>(
    mut rooms: Pin<&mut R>,
    group: &mut Group<M, L>,
    cx: &mut Context<'_>,
) -> Poll<Result<R::Output, L>> {
    if group.stopped {
        return pass_on_stop();
    }
    assert!(!group.taken, "polled after completion");
    if !group.begun && !budget::may_proceed(cx) {
        return Poll::Pending;
    }
    group.begun = true;
    let held = Frame::held_before();
    group.listen(cx);
    if !rooms.as_mut().poll(group, cx) {
        if group.region.stop_reason().is_some() {
            // The branches are still ending: the task must not end before them.
            Frame::hold_current();
        }
        return Poll::Pending;
    }
    group.taken = true;
    budget::spend();
    // Some branches were polled twice, and their first poll may have held the task.
    Frame::forget_holds(held);
    match group.end.take() {
        Some(End::Panicked(panic)) => panic.resume(),
        Some(End::Last(last)) => Poll::Ready(Err(last)),
        None => match rooms.take() {
            Some(output) => Poll::Ready(Ok(output)),
            None => {
                group.stopped = true;
                pass_on_stop()
            }
        },
    }
}
