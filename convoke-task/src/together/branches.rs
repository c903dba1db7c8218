//! What `join`, `try_join` and `race` take: a tuple of futures, or a vector. The one way all of them are polled.

use core::pin::Pin;
use core::task::{Context, Poll};

use convoke_core::raw::Frame;

use super::group::{End, Group, Rule};
use crate::region::pass_on_stop;

/// Several futures, or things that become futures: a tuple of up to twelve, or a vector.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not several futures that fit together",
    label = "a tuple of up to twelve futures, or a `Vec` of futures, is asked for",
    note = "for `try_join` each is a future of a `Result`, and all have the same error type; for `race` all have the same \
            type of value"
)]
pub trait Branches<M: Rule>: Sized {
    /// Where they run.
    type Rooms: Rooms<M, Self::Last>;
    /// What ends them all early.
    type Last;

    #[doc(hidden)]
    fn rooms(self) -> Self::Rooms;
}

/// Futures that run together, each in its room.
///
/// The futures of `join` and its siblings are generic over this and not over [`Branches`]: whether those are `Send` must not
/// depend on two types being equal, for the compiler forgets lifetimes there and does not find them equal any more.
pub trait Rooms<M: Rule, L> {
    /// What all of them together come to.
    type Output;

    /// Polls those that are to be polled. True if all have ended.
    #[doc(hidden)]
    fn poll(self: Pin<&mut Self>, group: &mut Group<M, L>, cx: &mut Context<'_>) -> bool;

    /// What was kept of them, if it is complete.
    #[doc(hidden)]
    fn take(self: Pin<&mut Self>) -> Option<Self::Output>;
}

/// Polls branches: what all come to, or what ended them early. Ends by the stopped door if it is neither.
pub(super) fn poll_all<M: Rule, R: Rooms<M, L>, L>(
    mut rooms: Pin<&mut R>,
    group: &mut Group<M, L>,
    cx: &mut Context<'_>,
) -> Poll<Result<R::Output, L>> {
    if group.stopped {
        return pass_on_stop();
    }
    assert!(!group.taken, "polled after it has ended");
    let held = Frame::held_before();
    group.listen(cx);
    if !rooms.as_mut().poll(group, cx) {
        if group.region.stop_reason().is_some() {
            // They are on their way home.
            Frame::hold_current();
        }
        return Poll::Pending;
    }
    group.taken = true;
    // Some were polled twice, and have held the task for the first time of it.
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
