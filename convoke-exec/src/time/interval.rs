//! `interval(period)`: one time after the other, at the same distance, however long the work between them takes.

use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use futures_core::Stream;
use pin_project_lite::pin_project;

use super::wait::Wait;

/// Ticks at the same distance. The first comes at once, at the time when it is first awaited, the next a period after that
/// one, and so on: each is due at its own time, so that the work between two does not make the rest late. For a first tick
/// later than now there is [`interval_at()`]. What becomes of ticks that one was too busy for, [`MissedTicks`] says.
///
/// It can be used in two ways: [`tick`](Interval::tick) waits for the next; pinned, it is a `Stream` that does not end.
/// Neither allocates.
///
/// # Panics
/// If the period is zero.
///
/// ```
/// use std::time::Duration;
/// use convoke::prelude::*;
/// use convoke::time::interval;
///
/// let outcome = block_on(async {
///     let period = Duration::from_millis(1);
///     let mut ticks = interval(period);
///     let first = ticks.tick().await;
///     assert_eq!(ticks.tick().await, first + period);
///     assert_eq!(ticks.tick().await, first + 2 * period);
/// });
/// assert_eq!(outcome, Outcome::Value(()));
/// ```
#[track_caller]
pub fn interval(period: Duration) -> Interval {
    Interval::new(Next::AtOnce, period)
}

/// Ticks at the same distance, the first of them at this time. All else is as for [`interval()`].
///
/// # Panics
/// If the period is zero.
///
/// ```
/// use std::time::{Duration, Instant};
/// use convoke::prelude::*;
/// use convoke::time::interval_at;
///
/// let outcome = block_on(async {
///     let period = Duration::from_millis(1);
///     let first = Instant::now() + period;
///     let mut ticks = interval_at(first, period);
///     assert_eq!(ticks.tick().await, first);
///     assert!(Instant::now() >= first);
/// });
/// assert_eq!(outcome, Outcome::Value(()));
/// ```
#[track_caller]
pub fn interval_at(first: Instant, period: Duration) -> Interval {
    Interval::new(Next::At(first), period)
}

/// What becomes of the ticks of an [`interval()`] that were missed. A tick is missed if the one after it is due as well by
/// the time that it is taken.
#[doc(alias = "MissedTickBehavior")]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MissedTicks {
    /// They come at once, one after the other, until one has caught up: none is lost. The tick of 1 was taken at 3.5: those
    /// of 2 and 3 come at once, the next at 4 and 5.
    #[default]
    Burst,
    /// They do not come, and the ones after are as far from now as they were meant to be from each other: never two at a
    /// shorter distance than the period. The tick of 1 was taken at 3.5: the next come at 4.5 and 5.5.
    Delay,
    /// They do not come, and the ones after come when they would have come anyway. The tick of 1 was taken at 3.5: the next
    /// come at 4 and 5.
    Skip,
}

pin_project! {
    /// See [`interval()`].
    #[derive(Debug)]
    #[must_use = "an interval does nothing until its ticks are awaited"]
    pub struct Interval {
        plan: Plan,
        // Of the stream. A tick that is awaited by itself brings its own.
        #[pin]
        wait: Option<Wait>,
    }
}

#[derive(Debug)]
struct Plan {
    period: Duration,
    next: Next,
    missed: MissedTicks,
}

#[derive(Clone, Copy, Debug)]
enum Next {
    /// When it is first awaited.
    AtOnce,
    At(Instant),
    /// At a time that is too far away to be named.
    Never,
}

impl Interval {
    #[track_caller]
    fn new(next: Next, period: Duration) -> Self {
        assert!(!period.is_zero(), "the period of an interval is not zero");
        Self { plan: Plan { period, next, missed: MissedTicks::default() }, wait: None }
    }

    /// The same, with another way to treat missed ticks. It is [`MissedTicks::Burst`] unless said otherwise.
    ///
    /// ```
    /// use std::time::Duration;
    /// use convoke::prelude::*;
    /// use convoke::time::{MissedTicks, interval};
    ///
    /// let outcome = block_on(async {
    ///     let period = Duration::from_millis(2);
    ///     let mut ticks = interval(period).missed(MissedTicks::Skip);
    ///     let first = ticks.tick().await;
    ///     std::thread::sleep(3 * period);
    ///     let late = ticks.tick().await;
    ///     assert_eq!(late, first + period);
    ///     // Those of `2 * period` and `3 * period` had passed.
    ///     assert!(ticks.tick().await >= first + 4 * period);
    /// });
    /// assert_eq!(outcome, Outcome::Value(()));
    /// ```
    #[doc(alias = "set_missed_tick_behavior")]
    pub fn missed(mut self, missed: MissedTicks) -> Self {
        self.plan.missed = missed;
        self
    }

    /// The distance of two ticks.
    pub fn period(&self) -> Duration {
        self.plan.period
    }

    /// Waits for the next tick.
    ///
    /// - *Completes with* the time that the tick was due at, not before it; stopped as soon as a stop is requested.
    /// - *If dropped*, no tick is lost: the next call waits for the same one.
    /// - *Runs on* the task that awaits it, by the clock of its executor.
    /// - *Panics* if it is polled outside a task.
    ///
    /// ```
    /// use std::time::Duration;
    /// use convoke::prelude::*;
    /// use convoke::time::interval;
    ///
    /// let outcome = block_on(async {
    ///     let mut ticks = interval(Duration::from_millis(1));
    ///     for _ in 0..3 {
    ///         ticks.tick().await;
    ///     }
    /// });
    /// assert_eq!(outcome, Outcome::Value(()));
    /// ```
    #[track_caller]
    pub fn tick(&mut self) -> Tick<'_> {
        Tick { plan: &mut self.plan, wait: Wait::here() }
    }
}

impl Plan {
    /// Waits for the next tick, says when it was due, and plans the one after.
    fn poll(&mut self, mut wait: Pin<&mut Wait>, cx: &Context<'_>) -> Poll<Instant> {
        let next = &mut self.next;
        let due = |now| match *next {
            Next::AtOnce => {
                *next = Next::At(now);
                Some(now)
            }
            Next::At(at) => Some(at),
            Next::Never => None,
        };
        ready!(wait.as_mut().poll("an interval", due, cx));
        let Next::At(due) = self.next else { return Poll::Pending };
        let after = match self.missed {
            MissedTicks::Burst => due.checked_add(self.period),
            MissedTicks::Delay | MissedTicks::Skip => self.after(due, wait.now()),
        };
        self.next = after.map_or(Next::Never, Next::At);
        Poll::Ready(due)
    }

    /// The tick after the one that was due, if it is `now`.
    fn after(&self, due: Instant, now: Instant) -> Option<Instant> {
        let after = due.checked_add(self.period)?;
        if now < after {
            return Some(after);
        }
        if self.missed == MissedTicks::Delay {
            return now.checked_add(self.period);
        }
        let into_period = now.duration_since(due).as_nanos() % self.period.as_nanos();
        let seconds = u64::try_from(into_period / 1_000_000_000).ok()?;
        let into_period = Duration::new(seconds, (into_period % 1_000_000_000) as u32);
        now.checked_add(self.period - into_period)
    }
}

pin_project! {
    /// The future of [`Interval::tick`].
    #[derive(Debug)]
    #[must_use = "futures do nothing until they are awaited"]
    pub struct Tick<'a> {
        plan: &'a mut Plan,
        #[pin]
        wait: Wait,
    }
}

impl Future for Tick<'_> {
    type Output = Instant;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Instant> {
        let this = self.project();
        this.plan.poll(this.wait, cx)
    }
}

/// As [`Interval::tick`], again and again. It does not end but by a stop.
///
/// ```
/// use std::pin::pin;
/// use std::time::Duration;
/// use convoke::prelude::*;
/// use convoke::task::map_concurrent;
/// use convoke::time::interval;
///
/// let outcome = block_on(async {
///     let period = Duration::from_millis(1);
///     let ticks = pin!(interval(period));
///     let mut looks = pin!(map_concurrent(ticks, 1, async |at| at));
///     let first = looks.next().await.unwrap();
///     assert_eq!(looks.next().await, Some(first + period));
/// });
/// assert_eq!(outcome, Outcome::Value(()));
/// ```
impl Stream for Interval {
    type Item = Instant;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Instant>> {
        let mut this = self.project();
        if this.wait.is_none() {
            this.wait.set(Some(Wait::here()));
        }
        let Some(wait) = this.wait.as_mut().as_pin_mut() else { return Poll::Pending };
        let due = ready!(this.plan.poll(wait, cx));
        this.wait.set(None);
        Poll::Ready(Some(due))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (usize::MAX, None)
    }
}
