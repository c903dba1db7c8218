//! Lanes: reusable slots for futures inside one task, each with a wake flag, so that only woken ones are
//! polled. Starting a future in a lane that was used before allocates nothing.
//!
//! The key of a woken lane is in the wake set or in the round, perhaps more than once: a waker of an earlier
//! future in the lane may have set the flag as well. The flag says if there is anything to poll.

use core::fmt;
use core::future::Future;
use core::pin::Pin;
use core::task::Waker;

use convoke_core::raw::{FrameArc, FrameBox, FrameMemory, FrameVec};
use convoke_core::{Outcome, Panic};

use crate::frame_queue::FrameQueue;
use crate::pinned::is_there;
use crate::region::{BodyMark, Held, PlainRegion};
use crate::together::ended::ended;
use crate::together::wake_set::{Key, WakeFlag, WakeSet};
use convoke_core::raw::{budget, visit_step};

/// Reusable slots for futures, of which only the woken ones are polled.
pub(super) struct Lanes<F> {
    lanes: FrameVec<Lane<F>>,
    free: FrameVec<usize>,
    wake_set: WakeSet,
    round: FrameQueue<Key>,
    held: Held,
}

struct Lane<F> {
    future: Pin<FrameBox<Option<F>>>,
    /// The number of the item that the future belongs to.
    number: u64,
    flag: FrameArc<WakeFlag>,
    waker: Waker,
    mark: BodyMark,
}

/// The number of an item, and the outcome of its future.
pub(super) type Ended<T> = (u64, Outcome<T>);

impl<F: Future> Lanes<F> {
    pub(super) fn new() -> Self {
        Self {
            lanes: FrameMemory::vec_in_task(),
            free: FrameMemory::vec_in_task(),
            wake_set: WakeSet::new(),
            round: FrameQueue::in_task(),
            held: Held::default(),
        }
    }

    pub(super) fn running(&self) -> usize {
        self.lanes.len() - self.free.len()
    }

    /// Puts a future into a free lane, and polls it. Returns its outcome, if it has ended.
    #[inline]
    pub(super) fn start(&mut self, future: F, number: u64, region: &PlainRegion) -> Option<Ended<F::Output>> {
        let index = match self.free.pop() {
            Some(index) => {
                let lane = &mut self.lanes[index];
                lane.future.set(Some(future));
                lane.number = number;
                lane.flag.take();
                index
            }
            None => self.open(future, number),
        };
        self.poll(index, region)
    }

    /// Adds a lane.
    #[cold]
    fn open(&mut self, future: F, number: u64) -> usize {
        let index = self.lanes.len();
        let flag = self.wake_set.flag(Key { index, serial: 0 });
        flag.take();
        let waker = flag.clone().into_waker();
        let future = FrameBox::pin_in_task(Some(future));
        self.lanes.push(Lane { future, number, flag, waker, mark: BodyMark::default() });
        index
    }

    /// Starts a round: moves the woken keys into it. Returns false if there are none.
    pub(super) fn begin_round(&mut self) -> bool {
        self.wake_set.take_woken(self.round.incoming());
        !self.round.is_empty()
    }

    /// Polls the lanes of the round, until a future ends, or the budget of the task is spent. Returns the outcome
    /// of the future.
    #[inline]
    pub(super) fn next_of_round(&mut self, region: &PlainRegion) -> Option<Ended<F::Output>> {
        while budget::has_left()
            && let Some(key) = self.round.pop()
        {
            let lane = &mut self.lanes[key.index];
            if is_there(lane.future.as_mut())
                && lane.flag.take()
                && let Some(ended) = self.poll(key.index, region)
            {
                return Some(ended);
            }
        }
        None
    }

    /// Polls a lane. If its future ends, frees the lane, and returns the outcome.
    #[inline]
    fn poll(&mut self, index: usize, region: &PlainRegion) -> Option<Ended<F::Output>> {
        let lane = &mut self.lanes[index];
        let future = lane.future.as_mut().as_pin_mut()?;
        let was_held = lane.mark.is_held();
        let polled = Panic::catch(|| region.poll_one(future, &lane.mark, &lane.waker));
        let ended = ended(polled, region, || lane.future.set(None));
        if ended.is_some() {
            lane.mark = BodyMark::default();
        }
        self.held.change(was_held, lane.mark.is_held());
        let outcome = ended?;
        lane.flag.disable();
        self.free.push(index);
        Some((lane.number, outcome))
    }

    /// Iterates over all lanes with a future. Costs time for each, so it must not be called once per poll.
    fn each(&mut self) -> impl Iterator<Item = &mut Lane<F>> {
        self.lanes
            .iter_mut()
            .inspect(|_| visit_step())
            .filter_map(|lane| is_there(lane.future.as_mut()).then_some(lane))
    }

    /// Wakes every lane, so that its future hears of a stop request.
    pub(super) fn wake_all(&mut self) {
        self.each().for_each(|lane| lane.flag.set());
    }

    /// Stores the owner's waker, or wakes it at once if a lane was woken meanwhile.
    pub(super) fn wait(&self, waker: &Waker) {
        self.wake_set.wait(waker);
    }

    /// Returns true if one of the futures must not be dropped yet.
    pub(super) fn is_held(&self) -> bool {
        self.held.any()
    }
}

impl<F> fmt::Debug for Lanes<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lanes")
            .field("running", &(self.lanes.len() - self.free.len()))
            .finish_non_exhaustive()
    }
}

#[cfg(all(test, not(feature = "loom")))]
mod tests {
    use core::future::poll_fn;
    use core::task::{Poll, Waker};
    use std::sync::Mutex;

    use convoke_core::Outcome;

    use crate::{block_on, checkpoint, for_each_concurrent, join, stopped};
    use convoke_core::raw::count_steps;

    const TURNS: usize = if cfg!(miri) { 30 } else { 500 };

    /// Waits until it is woken once; its waker is in `wakers`.
    async fn waits(wakers: &Mutex<Vec<Waker>>) {
        let mut polled = false;
        poll_fn(|cx| {
            if core::mem::replace(&mut polled, true) {
                return Poll::Ready(());
            }
            wakers.lock().unwrap().push(cx.waker().clone());
            Poll::Pending
        })
        .await;
    }

    #[test]
    fn turns_that_are_woken_one_by_one_are_not_all_visited_each_time() {
        let visited = count_steps(|| {
            let outcome = block_on(async {
                let wakers = Mutex::new(Vec::new());
                let turns = for_each_concurrent(0..TURNS, TURNS, async |_| waits(&wakers).await);
                let wake = async {
                    for _ in 0..TURNS {
                        checkpoint().await;
                        let waker = wakers.lock().unwrap().pop();
                        waker.expect("each waits").wake();
                    }
                };
                join((turns, wake)).await;
            });
            assert_eq!(outcome, Outcome::Value(()));
        });
        assert!(visited <= 8 * TURNS, "{TURNS} turns cost {visited} visits");
    }

    #[test]
    fn turns_that_all_stop_are_asked_to_stop_once() {
        let visited = count_steps(|| {
            let outcome = block_on(async {
                let wakers = Mutex::new(Vec::new());
                let turns = for_each_concurrent(0..TURNS, TURNS, async |_| -> () {
                    waits(&wakers).await;
                    stopped().await
                });
                let wake = async {
                    checkpoint().await;
                    let wakers = core::mem::take(&mut *wakers.lock().unwrap());
                    assert_eq!(wakers.len(), TURNS);
                    wakers.into_iter().for_each(Waker::wake);
                };
                join((turns, wake)).await;
            });
            assert_eq!(outcome, Outcome::Stopped);
        });
        assert!(visited <= 8 * TURNS, "{TURNS} stops cost {visited} visits");
    }
}
