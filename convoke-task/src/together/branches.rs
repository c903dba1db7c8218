//! The argument of `join`, `try_join` and `race`: a tuple of futures, or a vector. And the poll that they
//! have in common.

use core::pin::Pin;
use core::task::{Context, Poll};

use convoke_core::raw::{Frame, budget, outside_a_task};

use super::group::{End, Group, Rule, Stage};
use crate::region::pass_on_stop;

/// Argument of [`join`](super::join()), [`try_join`](super::try_join()) and [`race`](super::race()): a tuple
/// of up to twelve futures, or a vector. Types that are `IntoFuture` count as futures.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a tuple or a `Vec` of futures that can run together",
    label = "expected a tuple of up to twelve futures, or a `Vec` of futures",
    note = "for `try_join` each is a future of a `Result`, and all have the same error type; for `race` all have the same \
            type of value, and `select!` takes branches of different types"
)]
pub trait Branches<M: Rule>: Sized {
    /// Storage for the running futures.
    type Slots: BranchSlots<M, Self::Last>;
    /// Value that ends the group early: an error, or the value that wins a race.
    type Last;

    #[doc(hidden)]
    fn slots(self) -> Self::Slots;
}

/// Storage for futures that run together.
///
/// The futures of `join`, `try_join` and `race` are generic over this trait and not over [`Branches`].
/// Otherwise they would be `Send` only if two types are equal, and the compiler, which erases lifetimes
/// inside an `async` block, cannot prove that.
pub trait BranchSlots<M: Rule, L> {
    /// Output of all of them together.
    type Output;

    /// Polls the futures that need it, in a task whose current frame is `frame`. `heard` is true if the group was asked
    /// to stop since. Returns true if all have ended, and holds in `frame` no more.
    #[doc(hidden)]
    fn poll(
        self: Pin<&mut Self>,
        group: &mut Group<M, L>,
        heard: bool,
        frame: &Frame<'_>,
        cx: &mut Context<'_>,
    ) -> bool;

    /// Takes the output, if every future has contributed to it.
    #[doc(hidden)]
    fn take(self: Pin<&mut Self>) -> Option<Self::Output>;
}

/// Polls all branches. Completes with the output of all, or with the value that ended them early; otherwise
/// stops the task.
#[inline]
pub(super) fn poll_all<M: Rule, R: BranchSlots<M, L>, L>(
    mut slots: Pin<&mut R>,
    group: &mut Group<M, L>,
    cx: &mut Context<'_>,
) -> Poll<Result<R::Output, L>> {
    if group.progress.stage != Stage::Begun && !may_begin(&mut group.progress.stage, cx) {
        return Poll::Pending;
    }
    Frame::current(|frame| {
        let Some(frame) = frame else { outside_a_task("a future of Convoke's") };
        let heard = group.listen(frame, cx);
        if !slots.as_mut().poll(group, heard, frame, cx) {
            if group.region.is_asked() {
                // The branches are still ending: the task must not end before them.
                frame.hold();
            }
            return Poll::Pending;
        }
        group.progress.stage = Stage::Taken;
        budget::spend();
        // A group that is not over has no end.
        if group.progress.over {
            match group.progress.end.take() {
                Some(End::Panicked(panic)) => panic.resume(),
                Some(End::Last(last)) => return Poll::Ready(Err(last)),
                None => {}
            }
        }
        match slots.take() {
            Some(output) => Poll::Ready(Ok(output)),
            None => {
                group.progress.stage = Stage::Stopped;
                pass_on_stop()
            }
        }
    })
}

/// Begins a group that is new, if the task has budget left. Returns false if the group waits, or has stopped.
#[inline]
fn may_begin(stage: &mut Stage, cx: &Context<'_>) -> bool {
    match *stage {
        Stage::New if budget::may_proceed(cx) => {
            *stage = Stage::Begun;
            true
        }
        Stage::New => false,
        _ => begins_again(*stage),
    }
}

/// Stops the task again, for a group that has stopped. Panics if the group has returned its result.
#[cold]
fn begins_again(stage: Stage) -> bool {
    assert!(stage != Stage::Taken, "polled after completion");
    let _: Poll<()> = pass_on_stop();
    false
}
