//! A set of futures inside one task that polls only the ones that were woken. `join` and `race` of vectors,
//! and local scopes, are built on it.
//!
//! The owner polls in rounds: `begin_round` takes the woken keys, `next` and `poll` go through them,
//! `end_round` waits for more.
//!
//! 1. The key of a child that was woken is in the wake set or in the round, and only once. The child may have
//!    ended since; then its index may belong to a newer child, with another serial.
//! 2. Futures are boxed, so that the set itself may be moved.

use core::fmt;
use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Waker};

use convoke_core::raw::{FrameArc, FrameBox, FrameMemory, FrameVec, UnderWay, budget};
use convoke_core::{Outcome, Panic};

use super::ended::ended;
use super::wake_set::{Key, WakeFlag, WakeSet};
use crate::frame_queue::FrameQueue;
use crate::region::{BodyMark, Held, PlainRegion};
use convoke_core::raw::visit_step;

/// A set of futures, of which only the woken ones are polled. `T` is a tag that the owner gives to each child.
pub(crate) struct BranchSet<F: ?Sized, T = ()> {
    children: FrameVec<Option<Child<F, T>>>,
    free: FrameVec<usize>,
    wake_set: WakeSet,
    /// The keys to poll before the owner waits again.
    round: FrameQueue<Key>,
    /// The serial of the next child.
    serial: u64,
    held: Held,
    under_way: UnderWay,
}

struct Child<F: ?Sized, T> {
    future: Pin<FrameBox<F>>,
    serial: u64,
    flag: FrameArc<WakeFlag>,
    /// The waker of the flag. Cached, because creating one counts a reference.
    waker: Waker,
    mark: BodyMark,
    tag: T,
}

impl<F: Future + ?Sized, T> BranchSet<F, T> {
    pub(crate) fn new() -> Self {
        Self {
            children: FrameMemory::vec_in_task(),
            free: FrameMemory::vec_in_task(),
            wake_set: WakeSet::new(),
            round: FrameQueue::in_task(),
            serial: 0,
            held: Held::default(),
            under_way: UnderWay::new(),
        }
    }

    pub(crate) fn wake_set(&self) -> &WakeSet {
        &self.wake_set
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.free.len() == self.children.len()
    }

    /// Adds a child, to be polled in this round.
    pub(crate) fn insert(&mut self, future: Pin<FrameBox<F>>, tag: T) {
        let index = self.free.pop().unwrap_or_else(|| {
            self.children.push(None);
            self.children.len() - 1
        });
        let serial = self.serial;
        self.serial += 1;
        let flag = self.wake_set.flag(Key { index, serial });
        let waker = flag.clone().into_waker();
        self.children[index] = Some(Child { future, serial, flag, waker, mark: BodyMark::default(), tag });
        self.round.push(Key { index, serial });
    }

    /// Returns a flag for a future outside the set, such as the body of a scope. The owner polls it when
    /// `next` returns this key, for the first time in this round.
    pub(crate) fn flag_beside(&mut self, key: Key) -> FrameArc<WakeFlag> {
        self.round.push(key);
        self.wake_set.flag(key)
    }

    /// Iterates over all children. Costs time for each, so it must not be called once per poll.
    fn each(&self) -> impl Iterator<Item = &Child<F, T>> {
        self.children.iter().inspect(|_| visit_step()).flatten()
    }

    /// Wakes every child, so that it hears of a stop request.
    pub(crate) fn wake_all(&self) {
        self.each().for_each(|child| child.flag.set());
    }

    /// Starts a round: moves the woken keys into it. Called when the owner is polled.
    pub(crate) fn begin_round(&mut self) {
        self.wake_set.take_woken(self.round.incoming());
    }

    /// Takes the next key of the round. Returns `None` if there is none, or if the budget of the task is spent:
    /// then the next poll of the owner goes on with this round.
    pub(crate) fn next_within_budget(&mut self) -> Option<Key> {
        if budget::has_left() { self.round.pop() } else { None }
    }

    /// Returns true if the round has more keys.
    pub(crate) fn has_round(&self) -> bool {
        !self.round.is_empty()
    }

    /// Polls the child with this key from [`next_within_budget`](BranchSet::next_within_budget), if it has not ended. If it ends now,
    /// drops it, and returns its outcome and tag.
    pub(crate) fn poll(&mut self, key: Key, region: &PlainRegion) -> Option<(Outcome<F::Output>, T)> {
        let child = self.children[key.index].as_mut().filter(|child| child.serial == key.serial)?;
        child.flag.clear();
        let was_held = child.mark.is_held();
        let polled = Panic::catch(|| region.poll_one(child.future.as_mut(), &child.mark, &child.waker));
        if self.held.change(was_held, child.mark.is_held()) && !self.held.any() {
            self.under_way.end();
        }
        let mut tag = None;
        let outcome = ended(polled, region, || {
            if let Some(child) = self.children[key.index].take() {
                child.flag.disable();
                self.held.change(child.mark.is_held(), false);
                self.free.push(key.index);
                tag = Some(child.tag);
                drop(child.future);
            }
        })?;
        if !self.held.any() {
            self.under_way.end();
        }
        Some((outcome, tag?))
    }

    /// Ends the round: stores the owner's waker, or wakes it at once if a child was woken meanwhile, or if the
    /// budget did not suffice for this round.
    pub(crate) fn end_round(&mut self, cx: &Context<'_>) {
        if self.held.any() {
            self.under_way.hold(cx);
        } else {
            self.under_way.end();
        }
        if self.has_round() && budget::may_proceed(cx) {
            cx.waker().wake_by_ref();
        }
        self.wake_set.wait(cx.waker());
    }
}

impl<F: ?Sized, T> fmt::Debug for BranchSet<F, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BranchSet")
            .field("children", &(self.children.len() - self.free.len()))
            .finish_non_exhaustive()
    }
}

#[cfg(all(test, not(feature = "loom")))]
mod tests {
    use core::future::poll_fn;
    use core::task::Poll;
    use std::sync::Mutex;

    use super::*;
    use crate::{block_on, checkpoint, local_scope, shield};
    use convoke_core::raw::count_steps;

    const CHILDREN: usize = if cfg!(miri) { 30 } else { 500 };

    /// Waits until it is woken once; its waker is in `wakers`.
    async fn waits(wakers: &Mutex<Vec<Waker>>) {
        let mut polled = false;
        poll_fn(|cx| {
            if polled {
                return Poll::Ready(());
            }
            polled = true;
            wakers.lock().unwrap().push(cx.waker().clone());
            Poll::Pending
        })
        .await;
    }

    fn poll_round(set: &mut BranchSet<impl Future>, region: &PlainRegion) {
        set.begin_round();
        while let Some(key) = set.next_within_budget() {
            set.poll(key, region);
        }
        set.end_round(&Context::from_waker(Waker::noop()));
    }

    #[test]
    fn children_that_are_woken_one_by_one_are_not_all_visited_each_time() {
        let visited = count_steps(|| {
            let outcome = block_on(async {
                let wakers = Mutex::new(Vec::new());
                let (mut set, region) = (BranchSet::new(), PlainRegion::new());
                for _ in 0..CHILDREN {
                    set.insert(FrameBox::pin_in_task(waits(&wakers)), ());
                }
                poll_round(&mut set, &region);
                for _ in 0..CHILDREN {
                    let waker = wakers.lock().unwrap().pop();
                    waker.expect("each waits").wake();
                    poll_round(&mut set, &region);
                }
                set.is_empty()
            });
            assert_eq!(outcome, Outcome::Value(true));
        });
        assert!(visited <= 8 * CHILDREN, "{CHILDREN} children cost {visited} visits");
    }

    #[test]
    fn children_that_all_fail_are_asked_to_stop_once() {
        let visited = count_steps(|| {
            let outcome = block_on(async {
                local_scope(async |s| {
                    for n in 0..CHILDREN {
                        s.spawn(shield(async move {
                            checkpoint().await;
                            Err(n)
                        }));
                    }
                    Ok::<(), usize>(())
                })
                .await
            });
            assert_eq!(outcome, Outcome::Value(Err(0)));
        });
        assert!(visited <= 8 * CHILDREN, "{CHILDREN} failures cost {visited} visits");
    }
}
