//! The common part of `map_concurrent` and `for_each_concurrent`. It takes items while there is a free lane,
//! runs their futures, and returns results. When it is over early, it asks the running futures to stop, and
//! waits for them.

use core::fmt;
use core::future::Future;
use core::num::NonZeroUsize;
use core::panic::Location;
use core::task::{Context, Poll};
use std::collections::VecDeque;

use convoke_core::raw::{Frame, Polled, UnderWay, budget};
use convoke_core::{Outcome, Panic, StopReason};

use super::lanes::Lanes;
use super::source::Items;
use crate::region::{PlainRegion, pass_on_stop};

/// A running concurrent loop. `I` are the items, and `F` makes a future `R` of each.
pub(super) struct Engine<I, F, R: Future> {
    /// `None` when there are no more.
    items: Option<I>,
    make: F,
    limit: usize,
    lanes: Lanes<R>,
    order: Option<Order<R::Output>>,
    begun: u64,
    /// The number of items that were started since the last check for woken futures.
    started_since_check: u32,
    /// True until woken futures were checked for in this poll.
    may_check: bool,
    region: PlainRegion,
    over: Option<Over>,
    /// All futures were woken, to hear of the stop request.
    told: bool,
    under_way: UnderWay,
    location: &'static Location<'static>,
}

/// After this number of started items the engine checks for woken futures, even if there are free lanes.
const CHECK_EVERY: u32 = 32;

/// Results in the order of the items. `None` stands for a result that is not there yet.
struct Order<T> {
    waiting: VecDeque<Option<T>>,
    /// The number of the first item in `waiting`.
    first: u64,
}

/// Early end of a concurrent loop.
#[derive(Debug)]
pub(super) enum Over {
    Stopped,
    /// The owner has closed the loop. A future that stops later does not stop the task.
    Closed,
    Panicked(Panic),
}

impl<I: Items, F: FnMut(I::Item) -> R, R: Future> Engine<I, F, R> {
    pub(super) fn new(items: I, limit: NonZeroUsize, make: F, location: &'static Location<'static>) -> Self {
        Self {
            items: Some(items),
            make,
            limit: limit.get(),
            lanes: Lanes::new(),
            order: None,
            begun: 0,
            started_since_check: 0,
            may_check: false,
            region: PlainRegion::new(),
            over: None,
            told: false,
            under_way: UnderWay::new(),
            location,
        }
    }

    /// Returns results in the order of the items from now on.
    pub(super) fn keep_order(&mut self) {
        if self.order.is_none() {
            self.order = Some(Order { waiting: VecDeque::new(), first: self.begun });
        }
    }

    /// Polls for the next result. Completes with `None` when all futures have ended.
    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Option<R::Output>> {
        match Panic::catch(|| self.region.listen(cx)) {
            Ok(false) => {}
            // No more results: a consumer that gets one would stop, and leave futures that still clean up
            // behind.
            Ok(true) => self.finish(Over::Stopped),
            Err(panic) => self.finish(Over::Panicked(panic)),
        }
        loop {
            if !budget::may_proceed(cx) {
                return self.wait(cx);
            }
            if let Some(result) = self.in_turn() {
                budget::spend();
                return Poll::Ready(Some(result));
            }
            let ended = match self.lanes.next_of_round(&self.region) {
                Some(ended) => Some(ended),
                None if !budget::has_left() => None,
                None if self.started_since_check >= CHECK_EVERY && self.check_woken() => continue,
                None => match self.take_item(cx) {
                    Taken::Started(ended) => ended,
                    Taken::Waits | Taken::Nothing if self.check_woken() => continue,
                    Taken::Nothing if self.lanes.running() == 0 => return self.end(),
                    Taken::Waits | Taken::Nothing => return self.wait(cx),
                },
            };
            if let Some((number, outcome)) = ended
                && let Some(result) = self.sort(number, outcome)
            {
                budget::spend();
                return Poll::Ready(Some(result));
            }
        }
    }

    /// Starts a round of woken futures, once per poll of the owner: a future that wakes itself lets other
    /// tasks run first. Returns false if there are none.
    fn check_woken(&mut self) -> bool {
        if !core::mem::take(&mut self.may_check) {
            return false;
        }
        self.started_since_check = 0;
        self.lanes.begin_round()
    }

    /// Marks the start of a poll of the owner.
    pub(super) fn begin_poll(&mut self) {
        self.may_check = true;
    }

    /// Takes an item, if the limit allows, and starts its future.
    #[inline]
    fn take_item(&mut self, cx: &mut Context<'_>) -> Taken<R::Output> {
        let there = self.order.as_ref().map_or(self.lanes.running(), |order| order.waiting.len());
        if self.over.is_some() {
            return Taken::Nothing;
        }
        self.started_since_check += 1;
        let Some(items) = &mut self.items else { return Taken::Nothing };
        if there >= self.limit {
            return Taken::Nothing;
        }
        let (make, region) = (&mut self.make, &self.region);
        let begun = Panic::catch(|| match items.poll_next(region, cx) {
            Polled::Ready(item) => Polled::Ready(item.map(make)),
            Polled::Pending => Polled::Pending,
            Polled::Stopped => Polled::Stopped,
        });
        match begun {
            Ok(Polled::Ready(Some(future))) => {
                let number = self.begun;
                self.begun += 1;
                if let Some(order) = &mut self.order {
                    order.waiting.push_back(None);
                }
                return Taken::Started(self.lanes.start(future, number, &self.region));
            }
            Ok(Polled::Ready(None)) => {
                if let Err(panic) = Panic::catch(|| drop(self.items.take())) {
                    self.finish(Over::Panicked(panic));
                }
            }
            Ok(Polled::Pending) => return Taken::Waits,
            Ok(Polled::Stopped) => self.finish(Over::Stopped),
            Err(panic) => self.finish(Over::Panicked(panic)),
        }
        Taken::Started(None)
    }

    /// Returns a result that can be passed on now. Stores others, and ends the loop for a stop or a panic.
    #[inline]
    fn sort(&mut self, number: u64, outcome: Outcome<R::Output>) -> Option<R::Output> {
        match outcome {
            Outcome::Value(value) if self.over.is_some() => {
                if let Err(panic) = Panic::catch(|| drop(value)) {
                    self.finish(Over::Panicked(panic));
                }
            }
            Outcome::Value(value) => match &mut self.order {
                None => return Some(value),
                Some(order) => order.waiting[(number - order.first) as usize] = Some(value),
            },
            Outcome::Error(never) => never.absurd(),
            Outcome::Stopped => self.finish(Over::Stopped),
            Outcome::Panicked(panic) => self.finish(Over::Panicked(panic)),
        }
        None
    }

    /// Takes the next result in the order of the items, if it is there.
    fn in_turn(&mut self) -> Option<R::Output> {
        let order = self.order.as_mut()?;
        let result = order.waiting.pop_front_if(|first| first.is_some())?;
        order.first += 1;
        result
    }

    /// Ends the loop early: asks the running futures to stop.
    pub(super) fn finish(&mut self, over: Over) {
        let outranked = match &self.over {
            None | Some(Over::Stopped) => true,
            Some(Over::Closed) => matches!(over, Over::Panicked(_)),
            Some(Over::Panicked(_)) => false,
        };
        if outranked {
            self.over = Some(over);
        }
        let reason =
            if matches!(self.over, Some(Over::Closed)) { StopReason::Abandoned } else { StopReason::Sibling };
        let waiting = self.order.take();
        let dropped = Panic::catch(|| drop(waiting));
        let asked = Panic::catch(|| self.region.request_stop_after_around(reason));
        if let Err(panic) = dropped.and(asked)
            && !matches!(self.over, Some(Over::Panicked(_)))
        {
            self.over = Some(Over::Panicked(panic));
        }
        // Once: nothing is started after this, and otherwise each later failure would visit all futures.
        if !core::mem::replace(&mut self.told, true) {
            self.lanes.wake_all();
        }
    }

    /// Stores the waker, and holds the task if futures are ending.
    fn wait(&mut self, cx: &mut Context<'_>) -> Poll<Option<R::Output>> {
        if self.lanes.is_held() {
            self.under_way.hold(cx);
        } else {
            self.under_way.end();
        }
        Frame::current(|frame| {
            if let Some(frame) = frame {
                if self.region.stop_reason().is_some() {
                    frame.hold();
                }
                frame.waits_at(self.location);
            }
        });
        self.lanes.wait(cx.waker());
        Poll::Pending
    }

    /// Completes: no future runs, and none is started.
    fn end(&mut self) -> Poll<Option<R::Output>> {
        budget::spend();
        self.under_way.end();
        match self.over.take() {
            Some(Over::Panicked(panic)) => {
                self.over = Some(Over::Closed);
                panic.resume()
            }
            Some(Over::Closed) => {
                self.over = Some(Over::Closed);
                Poll::Ready(None)
            }
            Some(Over::Stopped) => {
                self.over = Some(Over::Stopped);
                pass_on_stop()
            }
            None => Poll::Ready(None),
        }
    }
}

/// Result of an attempt to take an item.
enum Taken<T> {
    /// An item was started, and its future may have ended; or the source has just ended. Ask again.
    Started(Option<super::lanes::Ended<T>>),
    /// The source waits for an item.
    Waits,
    /// The limit is reached, or there are no more items.
    Nothing,
}

impl<I, F, R: Future> fmt::Debug for Engine<I, F, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Engine")
            .field("at", &self.location)
            .field("lanes", &self.lanes)
            .field("begun", &self.begun)
            .field("over", &self.over)
            .finish_non_exhaustive()
    }
}
