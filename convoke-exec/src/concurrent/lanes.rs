//! Rooms for futures inside one task that are used again and again: each with a bell of its own, so that only those are
//! polled that were woken. Starting a future in a room that was used before allocates nothing.
//!
//! 1. The key of a lane that was woken is on the board or in the round, perhaps more than once: a waker of an earlier tenant may
//!    have rung too. Its bell says whether there is anything to answer.

use core::fmt;
use core::future::Future;
use core::pin::Pin;
use core::task::Waker;
use std::collections::VecDeque;
use std::sync::Arc;

use convoke_core::{Outcome, Panic};

use crate::region::{BodyMark, Region};
use crate::together::bells::{Bell, Bells, Key};
use crate::together::ended::ended;

/// See the head of this file.
pub(super) struct Lanes<F> {
    lanes: Vec<Lane<F>>,
    free: Vec<usize>,
    bells: Bells,
    round: VecDeque<Key>,
}

struct Lane<F> {
    future: Pin<Box<Option<F>>>,
    /// Which item it is of.
    number: u64,
    bell: Arc<Bell>,
    waker: Waker,
    mark: BodyMark,
}

/// How the future of an item has ended.
pub(super) type Ended<T> = (u64, Outcome<T>);

impl<F: Future> Lanes<F> {
    pub(super) fn new() -> Self {
        Self { lanes: Vec::new(), free: Vec::new(), bells: Bells::new(), round: VecDeque::new() }
    }

    pub(super) fn running(&self) -> usize {
        self.lanes.len() - self.free.len()
    }

    /// Begins a future, and says how it has ended if it has.
    #[inline]
    pub(super) fn start(&mut self, future: F, number: u64, region: &Region) -> Option<Ended<F::Output>> {
        let place = match self.free.pop() {
            Some(place) => {
                let lane = &mut self.lanes[place];
                lane.future.set(Some(future));
                lane.number = number;
                lane.mark = BodyMark::default();
                place
            }
            None => self.open(future, number),
        };
        self.lanes[place].bell.take_ring();
        self.poll(place, region)
    }

    #[cold]
    fn open(&mut self, future: F, number: u64) -> usize {
        let place = self.lanes.len();
        let bell = self.bells.bell(Key { place, serial: 0 });
        let waker = Waker::from(bell.clone());
        let future = Box::pin(Some(future));
        self.lanes.push(Lane { future, number, bell, waker, mark: BodyMark::default() });
        place
    }

    /// Those that were woken are in the round. Whether there are any.
    pub(super) fn begin_round(&mut self) -> bool {
        self.bells.take_rung(&mut self.round);
        !self.round.is_empty()
    }

    /// Polls those of the round until one of them has ended.
    #[inline]
    pub(super) fn next_of_round(&mut self, region: &Region) -> Option<Ended<F::Output>> {
        while let Some(key) = self.round.pop_front() {
            let lane = &self.lanes[key.place];
            if lane.future.is_some()
                && lane.bell.take_ring()
                && let Some(ended) = self.poll(key.place, region)
            {
                return Some(ended);
            }
        }
        None
    }

    #[inline]
    fn poll(&mut self, place: usize, region: &Region) -> Option<Ended<F::Output>> {
        let lane = &mut self.lanes[place];
        let future = lane.future.as_mut().as_pin_mut()?;
        let polled = Panic::catch(|| region.poll_one(future, &lane.mark, &lane.waker, true));
        let outcome = ended(polled, region, || lane.future.set(None))?;
        lane.bell.silence();
        self.free.push(place);
        Some((lane.number, outcome))
    }

    /// Has every lane polled, woken or not: a stop was asked for.
    pub(super) fn ring_all(&self) {
        for lane in self.lanes.iter().filter(|lane| lane.future.is_some()) {
            lane.bell.ring();
        }
    }

    /// The owner waits, and is woken at once if a lane was woken meanwhile.
    pub(super) fn wait(&self, waker: &Waker) {
        self.bells.wait(waker);
    }

    /// Whether one of them must not be dropped yet.
    pub(super) fn is_held(&self) -> bool {
        self.lanes.iter().any(|lane| lane.future.is_some() && lane.mark.is_held())
    }
}

impl<F> fmt::Debug for Lanes<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lanes")
            .field("running", &(self.lanes.len() - self.free.len()))
            .finish_non_exhaustive()
    }
}
