//! What `map_concurrent` and `for_each_concurrent` have in common: takes items while there is room, runs their futures, hands
//! out results, and, when it is over early, asks all to stop and brings them home.

use core::fmt;
use core::future::Future;
use core::num::NonZeroUsize;
use core::panic::Location;
use core::task::{Context, Poll};
use std::collections::VecDeque;

use convoke_core::raw::{Frame, Polled};
use convoke_core::{Outcome, Panic, StopReason};

use super::lanes::Lanes;
use super::source::Items;
use crate::region::{Region, pass_on_stop};

/// See the head of this file. `I` are the items, `F` makes futures `R` of them.
pub(super) struct Engine<I, F, R: Future> {
    /// None when there are no more.
    items: Option<I>,
    make: F,
    limit: usize,
    lanes: Lanes<R>,
    order: Option<Order<R::Output>>,
    begun: u64,
    /// How many items were begun since it was looked at who was woken.
    overtaken: u32,
    may_look: bool,
    region: Region,
    over: Option<Over>,
    /// All futures were woken, to hear of the stop.
    told: bool,
    place: &'static Location<'static>,
}

/// After so many items that were begun it is looked who was woken, even if there is room for more.
const OVERTAKEN: u32 = 32;

/// Results that wait until it is their turn; those that are not there yet have a place.
struct Order<T> {
    waiting: VecDeque<Option<T>>,
    /// Of the first place.
    first: u64,
}

/// Why it is over early.
#[derive(Debug)]
pub(super) enum Over {
    Stopped,
    /// Whoever has the engine has enough: then it does not matter whether something has stopped.
    Closed,
    Panicked(Panic),
}

impl<I: Items, F: FnMut(I::Item) -> R, R: Future> Engine<I, F, R> {
    pub(super) fn new(items: I, limit: NonZeroUsize, make: F, place: &'static Location<'static>) -> Self {
        Self {
            items: Some(items),
            make,
            limit: limit.get(),
            lanes: Lanes::new(),
            order: None,
            begun: 0,
            overtaken: 0,
            may_look: false,
            region: Region::new(),
            over: None,
            told: false,
            place,
        }
    }

    pub(super) fn keep_order(&mut self) {
        if self.order.is_none() {
            self.order = Some(Order { waiting: VecDeque::new(), first: self.begun });
        }
    }

    /// The next result; `None` when all have ended.
    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Option<R::Output>> {
        match Panic::catch(|| self.region.listen(cx)) {
            Ok(false) => {}
            // Nothing is handed out any more: whoever takes it would stop, and leave those that clean up behind.
            Ok(true) => self.finish(Over::Stopped),
            Err(panic) => self.finish(Over::Panicked(panic)),
        }
        loop {
            if let Some(result) = self.in_turn() {
                return Poll::Ready(Some(result));
            }
            let ended = match self.lanes.next_of_round(&self.region) {
                Some(ended) => Some(ended),
                None if self.overtaken >= OVERTAKEN && self.look() => continue,
                None => match self.take_item(cx) {
                    Taken::Started(ended) => ended,
                    Taken::Waits | Taken::Nothing if self.look() => continue,
                    Taken::Nothing if self.lanes.running() == 0 => return self.end(),
                    Taken::Waits | Taken::Nothing => return self.wait(cx),
                },
            };
            if let Some((number, outcome)) = ended
                && let Some(result) = self.sort(number, outcome)
            {
                return Poll::Ready(Some(result));
            }
        }
    }

    /// Looks at who was woken, if that was not done in this poll. Who wakes itself meanwhile lets others run first.
    fn look(&mut self) -> bool {
        if !core::mem::take(&mut self.may_look) {
            return false;
        }
        self.overtaken = 0;
        self.lanes.begin_round()
    }

    /// Its owner is polled.
    pub(super) fn begin_poll(&mut self) {
        self.may_look = true;
    }

    /// Takes an item, if there is room, and begins with it.
    #[inline]
    fn take_item(&mut self, cx: &mut Context<'_>) -> Taken<R::Output> {
        let there = self.order.as_ref().map_or(self.lanes.running(), |order| order.waiting.len());
        if self.over.is_some() {
            return Taken::Nothing;
        }
        self.overtaken += 1;
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

    /// The result, if the time for it is now.
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

    fn in_turn(&mut self) -> Option<R::Output> {
        let order = self.order.as_mut()?;
        let result = order.waiting.pop_front_if(|first| first.is_some())?;
        order.first += 1;
        result
    }

    /// It is over: those that run are asked to stop.
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
        let let_go = Panic::catch(|| drop(waiting));
        let asked = Panic::catch(|| self.region.request_stop_after_around(reason));
        if let Err(panic) = let_go.and(asked)
            && !matches!(self.over, Some(Over::Panicked(_)))
        {
            self.over = Some(Over::Panicked(panic));
        }
        // Once: nothing is started any more. All would be visited for each one that fails after the first.
        if !core::mem::replace(&mut self.told, true) {
            self.lanes.wake_all();
        }
    }

    fn wait(&mut self, cx: &mut Context<'_>) -> Poll<Option<R::Output>> {
        Frame::current(|frame| {
            if let Some(frame) = frame {
                if self.region.stop_reason().is_some() || self.lanes.is_held() {
                    frame.hold();
                }
                frame.waits_at(self.place);
            }
        });
        self.lanes.wait(cx.waker());
        Poll::Pending
    }

    /// Nothing runs, and nothing is begun any more.
    fn end(&mut self) -> Poll<Option<R::Output>> {
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

/// What came of taking an item.
enum Taken<T> {
    /// One was begun, and perhaps has ended already; or there are no more. It is to be asked again.
    Started(Option<super::lanes::Ended<T>>),
    /// There will be one.
    Waits,
    /// There is no room, or nothing to be begun any more.
    Nothing,
}

impl<I, F, R: Future> fmt::Debug for Engine<I, F, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Engine")
            .field("at", &self.place)
            .field("lanes", &self.lanes)
            .field("begun", &self.begun)
            .field("over", &self.over)
            .finish_non_exhaustive()
    }
}
