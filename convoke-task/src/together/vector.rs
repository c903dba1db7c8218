//! Vectors of futures, each in a box with a waker of its own. Only the woken ones are polled.

use core::future::{Future, IntoFuture};
use core::pin::Pin;
use core::task::Context;

use convoke_core::raw::{Frame, FrameBox};

use super::branch_set::BranchSet;
use super::branches::{BranchSlots, Branches};
use super::group::{Group, Sort};

/// Storage of a vector of branches.
#[derive(Debug)]
pub struct VectorSlots<F, K> {
    set: BranchSet<F, usize>,
    values: Vec<Option<K>>,
}

// The futures are in boxes, and the values are never pinned.
impl<F, K> Unpin for VectorSlots<F, K> {}

#[diagnostic::do_not_recommend]
impl<M, F> Branches<M> for Vec<F>
where
    F: IntoFuture,
    M: Sort<F::Output>,
{
    type Slots = VectorSlots<F::IntoFuture, M::Kept>;
    type Last = M::Last;

    fn slots(self) -> Self::Slots {
        let mut set = BranchSet::new();
        let values = self.iter().map(|_| None).collect();
        for (index, future) in self.into_iter().enumerate() {
            set.insert(FrameBox::pin_in_task(future.into_future()), index);
        }
        VectorSlots { set, values }
    }
}

#[diagnostic::do_not_recommend]
impl<M, L, F, K> BranchSlots<M, L> for VectorSlots<F, K>
where
    F: Future,
    M: Sort<F::Output, Kept = K, Last = L>,
{
    type Output = Vec<K>;

    fn poll(
        self: Pin<&mut Self>,
        group: &mut Group<M, L>,
        heard: bool,
        frame: &Frame<'_>,
        cx: &mut Context<'_>,
    ) -> bool {
        let Self { set, values } = self.get_mut();
        let held = frame.held();
        if heard {
            set.wake_all();
        }
        set.begin_round();
        while let Some(key) = set.next_within_budget() {
            let Some((outcome, index)) = set.poll(key, &group.region) else { continue };
            let over = group.progress.over;
            values[index] = group.ended(outcome);
            if group.progress.over && !over {
                set.wake_all();
            }
        }
        let all = set.is_empty();
        if all {
            // Some branches were polled twice, and their first poll may have held the task.
            frame.restore_held(held);
        } else {
            set.end_round(cx);
        }
        all
    }

    fn take(self: Pin<&mut Self>) -> Option<Vec<K>> {
        let values = core::mem::take(&mut self.get_mut().values);
        // An empty race has no winner: it ends as stopped.
        if values.is_empty() && !M::EMPTY_IS_COMPLETE {
            return None;
        }
        values.into_iter().collect()
    }
}
