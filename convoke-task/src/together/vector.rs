//! Vectors of futures: as many as there are, each in a box with a waker of its own, of which only the woken are polled.

use core::future::{Future, IntoFuture};
use core::pin::Pin;
use core::task::Context;

use super::branch_set::BranchSet;
use super::branches::{Branches, Rooms};
use super::group::{End, Group, Sort};

/// Room for them.
#[derive(Debug)]
pub struct VectorRooms<F, K> {
    set: BranchSet<F, usize>,
    kept: Vec<Option<K>>,
}

// The futures are in boxes, and what is kept is never pinned.
impl<F, K> Unpin for VectorRooms<F, K> {}

#[diagnostic::do_not_recommend]
impl<M, F> Branches<M> for Vec<F>
where
    F: IntoFuture,
    M: Sort<F::Output>,
{
    type Rooms = VectorRooms<F::IntoFuture, M::Kept>;
    type Last = M::Last;

    fn rooms(self) -> Self::Rooms {
        let mut set = BranchSet::new();
        let kept = self.iter().map(|_| None).collect();
        for (place, future) in self.into_iter().enumerate() {
            set.insert(Box::pin(future.into_future()), place);
        }
        VectorRooms { set, kept }
    }
}

#[diagnostic::do_not_recommend]
impl<M, L, F, K> Rooms<M, L> for VectorRooms<F, K>
where
    F: Future,
    M: Sort<F::Output, Kept = K, Last = L>,
{
    type Output = Vec<K>;

    fn poll(self: Pin<&mut Self>, group: &mut Group<M, L>, cx: &mut Context<'_>) -> bool {
        let Self { set, kept } = self.get_mut();
        if group.heard {
            set.ring_all();
        }
        set.begin_round();
        while let Some(key) = set.next() {
            let Some((outcome, place)) = set.poll(key, &group.region) else { continue };
            let over = group.over;
            kept[place] = group.ended(outcome);
            if group.over && !over {
                if let Some(panic) = set.drop_unbegun(&group.region) {
                    group.finish(Some(End::Panicked(panic)));
                }
                set.ring_all();
            }
        }
        let all = set.is_empty();
        if !all {
            set.end_round(cx.waker());
        }
        all
    }

    fn take(self: Pin<&mut Self>) -> Option<Vec<K>> {
        let kept = core::mem::take(&mut self.get_mut().kept);
        // An empty race has no winner, and stops.
        if kept.is_empty() && !M::EMPTY_IS_COMPLETE {
            return None;
        }
        kept.into_iter().collect()
    }
}
