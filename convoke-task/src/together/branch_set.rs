//! A set of futures inside one task, of which only those are polled that were woken. `join` and `race` of vectors stand on it,
//! and the local scope.
//!
//! 1. The key of a child that was woken is in one place: on the board, or in the round. One that is found there is of a
//!    child that was woken, or that has ended since; its place may have another tenant then, with another number.
//! 2. Futures are boxed and stay where they are; the set itself may be moved.

use core::fmt;
use core::future::Future;
use core::pin::Pin;
use core::task::Waker;
use std::collections::VecDeque;
use std::sync::Arc;

use convoke_core::raw::Frame;
use convoke_core::{Outcome, Panic};

use super::ended::ended;
use super::wake_set::{Key, WakeFlag, WakeSet};
use crate::region::{BodyMark, Region};
use convoke_core::raw::visit_step;

/// See the head of this file. `T` is what the owner wants to know of each child.
pub(crate) struct BranchSet<F: ?Sized, T = ()> {
    children: Vec<Option<Child<F, T>>>,
    free: Vec<usize>,
    bells: WakeSet,
    /// Those to be polled before the owner waits again.
    round: VecDeque<Key>,
    /// How many children there were.
    serial: u64,
    /// How many children must not be dropped yet, by what each has said when it was polled last.
    held: usize,
}

struct Child<F: ?Sized, T> {
    future: Pin<Box<F>>,
    serial: u64,
    bell: Arc<WakeFlag>,
    /// Of the bell. Made once: making one counts.
    waker: Waker,
    begun: bool,
    mark: BodyMark,
    tag: T,
}

impl<F: Future + ?Sized, T> BranchSet<F, T> {
    pub(crate) fn new() -> Self {
        Self {
            children: Vec::new(),
            free: Vec::new(),
            bells: WakeSet::new(),
            round: VecDeque::new(),
            serial: 0,
            held: 0,
        }
    }

    pub(crate) fn bells(&self) -> &WakeSet {
        &self.bells
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.free.len() == self.children.len()
    }

    /// Adds a child; it is polled in this round.
    pub(crate) fn insert(&mut self, future: Pin<Box<F>>, tag: T) {
        let place = self.free.pop().unwrap_or_else(|| {
            self.children.push(None);
            self.children.len() - 1
        });
        let serial = self.serial;
        self.serial += 1;
        let bell = self.bells.bell(Key { place, serial });
        let waker = Waker::from(bell.clone());
        self.children[place] =
            Some(Child { future, serial, bell, waker, begun: false, mark: BodyMark::default(), tag });
        self.round.push_back(Key { place, serial });
    }

    /// A bell for something that its owner polls beside the children, when this key comes up. It does so in this round.
    pub(crate) fn bell_beside(&mut self, key: Key) -> Arc<WakeFlag> {
        self.round.push_back(key);
        self.bells.bell(key)
    }

    /// All children: not to be called for each one that is polled.
    fn each(&self) -> impl Iterator<Item = &Child<F, T>> {
        self.children.iter().inspect(|_| visit_step()).flatten()
    }

    /// Has every child polled, woken or not: a stop was asked for.
    pub(crate) fn ring_all(&self) {
        self.each().for_each(|child| child.bell.ring());
    }

    /// The owner is polled: all that were woken are in the round.
    pub(crate) fn begin_round(&mut self) {
        self.bells.take_rung(&mut self.round);
    }

    /// The next of the round.
    pub(crate) fn next(&mut self) -> Option<Key> {
        self.round.pop_front()
    }

    /// Polls the child of this key, which [`next`](BranchSet::next) has said, if it is still there. What has come of it, if it
    /// has ended; then it is gone.
    pub(crate) fn poll(&mut self, key: Key, region: &Region) -> Option<(Outcome<F::Output>, T)> {
        let child = self.children[key.place].as_mut().filter(|child| child.serial == key.serial)?;
        child.bell.answer();
        child.begun = true;
        self.held -= usize::from(child.mark.is_held());
        let polled = Panic::catch(|| region.poll_one(child.future.as_mut(), &child.mark, &child.waker, true));
        self.held += usize::from(child.mark.is_held());
        let mut tag = None;
        let outcome = ended(polled, region, || {
            if let Some(child) = self.children[key.place].take() {
                child.bell.silence();
                self.held -= usize::from(child.mark.is_held());
                self.free.push(key.place);
                tag = Some(child.tag);
                drop(child.future);
            }
        })?;
        Some((outcome, tag?))
    }

    /// Drops children that were never polled. Their destructors may panic: the first panic.
    pub(crate) fn drop_unbegun(&mut self, region: &Region) -> Option<Panic> {
        let mut first = None;
        for (key, child) in self.children.iter_mut().enumerate() {
            visit_step();
            if child.as_ref().is_some_and(|child| !child.begun) {
                self.free.push(key);
                let panic = Panic::catch(|| region.within(|| drop(child.take()))).err();
                first = first.or(panic);
            }
        }
        first
    }

    /// The round is over, and the owner waits. It is woken at once if a child was woken meanwhile.
    pub(crate) fn end_round(&self, waker: &Waker) {
        if self.held > 0 {
            Frame::hold_current();
        }
        self.bells.wait(waker);
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

    const CHILDREN: usize = if cfg!(miri) { 100 } else { 500 };

    /// Waits until it is woken once; its waker is to be found there.
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

    fn poll_round(set: &mut BranchSet<impl Future>, region: &Region) {
        set.begin_round();
        while let Some(key) = set.next() {
            set.poll(key, region);
        }
        set.end_round(Waker::noop());
    }

    #[test]
    fn children_that_are_woken_one_by_one_are_not_all_visited_each_time() {
        let visited = count_steps(|| {
            let outcome = block_on(async {
                let wakers = Mutex::new(Vec::new());
                let (mut set, region) = (BranchSet::new(), Region::new());
                for _ in 0..CHILDREN {
                    set.insert(Box::pin(waits(&wakers)), ());
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
