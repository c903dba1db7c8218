//! Rooms for futures inside one task that are used again and again: each with a flag of its own, so that only those are
//! polled that were woken. Starting a future in a room that was used before allocates nothing.
//!
//! 1. The key of a lane that was woken is on the board or in the round, perhaps more than once: a waker of an earlier tenant may
//!    have rung too. Its flag says whether there is anything to answer.

use core::fmt;
use core::future::Future;
use core::pin::Pin;
use core::task::Waker;
use std::collections::VecDeque;
use std::sync::Arc;

use convoke_core::{Outcome, Panic};

use crate::region::{BodyMark, Region};
use crate::together::ended::ended;
use crate::together::wake_set::{Key, WakeFlag, WakeSet};
use convoke_core::raw::visit_step;

/// See the head of this file.
pub(super) struct Lanes<F> {
    lanes: Vec<Lane<F>>,
    free: Vec<usize>,
    wake_set: WakeSet,
    round: VecDeque<Key>,
    /// How many futures must not be dropped yet, by what each has said when it was polled last.
    held: usize,
}

struct Lane<F> {
    future: Pin<Box<Option<F>>>,
    /// Which item it is of.
    number: u64,
    flag: Arc<WakeFlag>,
    waker: Waker,
    mark: BodyMark,
}

/// How the future of an item has ended.
pub(super) type Ended<T> = (u64, Outcome<T>);

impl<F: Future> Lanes<F> {
    pub(super) fn new() -> Self {
        Self {
            lanes: Vec::new(),
            free: Vec::new(),
            wake_set: WakeSet::new(),
            round: VecDeque::new(),
            held: 0,
        }
    }

    pub(super) fn running(&self) -> usize {
        self.lanes.len() - self.free.len()
    }

    /// Begins a future, and says how it has ended if it has.
    #[inline]
    pub(super) fn start(&mut self, future: F, number: u64, region: &Region) -> Option<Ended<F::Output>> {
        let index = match self.free.pop() {
            Some(index) => {
                let lane = &mut self.lanes[index];
                lane.future.set(Some(future));
                lane.number = number;
                index
            }
            None => self.open(future, number),
        };
        self.lanes[index].flag.take();
        self.poll(index, region)
    }

    #[cold]
    fn open(&mut self, future: F, number: u64) -> usize {
        let index = self.lanes.len();
        let flag = self.wake_set.flag(Key { index, serial: 0 });
        let waker = Waker::from(flag.clone());
        let future = Box::pin(Some(future));
        self.lanes.push(Lane { future, number, flag, waker, mark: BodyMark::default() });
        index
    }

    /// Those that were woken are in the round. Whether there are any.
    pub(super) fn begin_round(&mut self) -> bool {
        self.wake_set.take_woken(&mut self.round);
        !self.round.is_empty()
    }

    /// Polls those of the round until one of them has ended.
    #[inline]
    pub(super) fn next_of_round(&mut self, region: &Region) -> Option<Ended<F::Output>> {
        while let Some(key) = self.round.pop_front() {
            let lane = &self.lanes[key.index];
            if lane.future.is_some()
                && lane.flag.take()
                && let Some(ended) = self.poll(key.index, region)
            {
                return Some(ended);
            }
        }
        None
    }

    #[inline]
    fn poll(&mut self, index: usize, region: &Region) -> Option<Ended<F::Output>> {
        let lane = &mut self.lanes[index];
        let future = lane.future.as_mut().as_pin_mut()?;
        self.held -= usize::from(lane.mark.is_held());
        let polled = Panic::catch(|| region.poll_one(future, &lane.mark, &lane.waker, true));
        self.held += usize::from(lane.mark.is_held());
        let outcome = ended(polled, region, || lane.future.set(None))?;
        self.held -= usize::from(lane.mark.is_held());
        lane.mark = BodyMark::default();
        lane.flag.disable();
        self.free.push(index);
        Some((lane.number, outcome))
    }

    /// All lanes with a future: not to be called for each one that is polled.
    fn each(&self) -> impl Iterator<Item = &Lane<F>> {
        self.lanes.iter().inspect(|_| visit_step()).filter(|lane| lane.future.is_some())
    }

    /// Has every lane polled, woken or not: a stop was asked for.
    pub(super) fn wake_all(&self) {
        self.each().for_each(|lane| lane.flag.set());
    }

    /// The owner waits, and is woken at once if a lane was woken meanwhile.
    pub(super) fn wait(&self, waker: &Waker) {
        self.wake_set.wait(waker);
    }

    /// Whether one of them must not be dropped yet.
    pub(super) fn is_held(&self) -> bool {
        self.held > 0
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

    const TURNS: usize = if cfg!(miri) { 100 } else { 500 };

    /// Waits until it is woken once; its waker is to be found there.
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
