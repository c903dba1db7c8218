//! `interval(period)`: ticks at a fixed period, however long the work between them takes.

use core::future::Future;
use core::panic::Location;
use core::pin::Pin;
use core::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use futures_core::Stream;
use pin_project_lite::pin_project;

use super::When;
use super::now::now;
use super::wait::Wait;

/// Creates an interval that ticks at a fixed period. The first tick is due when it is first awaited, the next
/// one a period later, and so on. Each tick has its own due time, so slow work between two ticks does not
/// delay the later ones. Use [`interval_at()`] for a later first tick. [`MissedTicks`] says what happens to
/// ticks that are missed.
///
/// Use [`tick`](Interval::tick) to wait for the next tick, which does not allocate, or use the interval as a
/// `Stream` that never ends, which allocates its timer once.
///
/// # Panics
/// If `period` is zero.
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
    Interval::new(NextTick::AtOnce, period)
}

/// Creates an interval whose first tick is due at `first`. Otherwise it is like [`interval()`].
///
/// # Panics
/// If `period` is zero.
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
    Interval::new(NextTick::At(first), period)
}

/// Treatment of missed ticks by an [`interval()`]. A tick is missed if the one after it is already due when
/// it is taken.
#[doc(alias = "MissedTickBehavior")]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MissedTicks {
    /// Missed ticks come at once, one after the other, so none is lost. For example, if the tick of time 1 is
    /// taken at 3.5, those of 2 and 3 come at once, and the next ones at 4 and 5.
    #[default]
    Burst,
    /// Missed ticks are dropped, and the schedule restarts now, so two ticks are never closer than the
    /// period. For example, if the tick of time 1 is taken at 3.5, the next ones come at 4.5 and 5.5.
    Delay,
    /// Missed ticks are dropped, and the schedule stays. For example, if the tick of time 1 is taken at 3.5,
    /// the next ones come at 4 and 5.
    Skip,
}

/// Ticks at a fixed period, created by [`interval()`] and [`interval_at()`].
#[derive(Debug)]
#[must_use = "an interval does nothing until its ticks are awaited"]
pub struct Interval {
    schedule: Schedule,
    /// The wait of the stream, in a box because the interval moves. A `Tick` has its own.
    wait: Option<Pin<Box<Wait>>>,
    /// Waits of the stream are shown at the line that has created the interval.
    location: &'static Location<'static>,
}

#[derive(Debug)]
struct Schedule {
    period: Duration,
    next: NextTick,
    missed: MissedTicks,
}

#[derive(Clone, Copy, Debug)]
enum NextTick {
    /// Due when it is first awaited.
    AtOnce,
    At(Instant),
    /// Due at a time that an `Instant` cannot represent.
    Never,
}

impl Interval {
    #[track_caller]
    fn new(next: NextTick, period: Duration) -> Self {
        assert!(!period.is_zero(), "the period of an interval must not be zero");
        let schedule = Schedule { period, next, missed: MissedTicks::default() };
        Self { schedule, wait: None, location: Location::caller() }
    }

    /// Sets what happens to missed ticks. The default is [`MissedTicks::Burst`].
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
    ///     // Those of `2 * period` and `3 * period` were missed.
    ///     assert!(ticks.tick().await >= first + 4 * period);
    /// });
    /// assert_eq!(outcome, Outcome::Value(()));
    /// ```
    #[doc(alias = "set_missed_tick_behavior")]
    pub fn missed(mut self, missed: MissedTicks) -> Self {
        self.schedule.missed = missed;
        self
    }

    /// Returns the period.
    pub fn period(&self) -> Duration {
        self.schedule.period
    }

    /// Restarts the schedule: the next tick is due a period from now, by the clock of the running task.
    ///
    /// ```
    /// use std::time::Duration;
    /// use convoke::prelude::*;
    /// use convoke::time::{interval, now};
    ///
    /// let outcome = block_on(async {
    ///     let period = Duration::from_millis(1);
    ///     let mut ticks = interval(period);
    ///     ticks.tick().await;
    ///     let begin = now();
    ///     ticks.reset();
    ///     assert!(ticks.tick().await >= begin + period);
    ///     ticks.reset_after(Duration::from_millis(2));
    ///     assert!(ticks.tick().await >= begin + 3 * period);
    /// });
    /// assert_eq!(outcome, Outcome::Value(()));
    /// ```
    pub fn reset(&mut self) {
        self.reset_after(self.schedule.period);
    }

    /// Restarts the schedule: the next tick is due at once, and the one after it a period later.
    pub fn reset_immediately(&mut self) {
        self.reset_at(now());
    }

    /// Restarts the schedule: the next tick is due after `delay`, by the clock of the running task, and the
    /// one after it a period later.
    pub fn reset_after(&mut self, delay: Duration) {
        self.restart(now().checked_add(delay));
    }

    /// Restarts the schedule: the next tick is due at `first`, and the one after it a period later.
    pub fn reset_at(&mut self, first: Instant) {
        self.restart(Some(first));
    }

    /// Sets the time of the next tick. `None` means never.
    fn restart(&mut self, next: Option<Instant>) {
        self.schedule.next = next.map_or(NextTick::Never, NextTick::At);
        match (&mut self.wait, next) {
            (Some(wait), Some(at)) => wait.as_mut().move_to(When::At(at)),
            (Some(wait), None) => wait.as_mut().reset(),
            (None, _) => {}
        }
    }

    /// Waits for the next tick.
    ///
    /// - *Completes with* the time at which the tick was due, and not before that time; or as stopped as soon
    ///   as a stop is requested.
    /// - *If dropped*, no tick is lost: the next call waits for the same one.
    /// - *Runs on* the task that awaits it, by the clock of its executor.
    /// - *Panics* if polled outside a task.
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
        Tick { schedule: &mut self.schedule, wait: Wait::at(Location::caller()) }
    }
}

impl Schedule {
    /// Waits for the next tick, returns its due time, and schedules the one after.
    fn poll(&mut self, mut wait: Pin<&mut Wait>, cx: &Context<'_>) -> Poll<Instant> {
        let next = &mut self.next;
        let due = |now| match *next {
            NextTick::AtOnce => {
                *next = NextTick::At(now);
                Some(now)
            }
            NextTick::At(at) => Some(at),
            NextTick::Never => None,
        };
        ready!(wait.as_mut().poll("an interval", due, cx));
        let NextTick::At(due) = self.next else { return Poll::Pending };
        let after = match self.missed {
            MissedTicks::Burst => due.checked_add(self.period),
            MissedTicks::Delay | MissedTicks::Skip => self.after(due, wait.now()),
        };
        self.next = after.map_or(NextTick::Never, NextTick::At);
        Poll::Ready(due)
    }

    /// Returns the tick after the one that was due at `due` and is taken at `now`.
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
    /// Future of [`Interval::tick`].
    #[derive(Debug)]
    #[must_use = "futures do nothing until they are awaited"]
    pub struct Tick<'a> {
        schedule: &'a mut Schedule,
        #[pin]
        wait: Wait,
    }
}

impl Future for Tick<'_> {
    type Output = Instant;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Instant> {
        let this = self.project();
        this.schedule.poll(this.wait, cx)
    }
}

/// Stream of ticks: each item is the result of [`Interval::tick`]. It ends only by a stop.
///
/// ```
/// use std::time::Duration;
/// use convoke::prelude::*;
/// use convoke::task::map_concurrent;
/// use convoke::time::interval;
///
/// let outcome = block_on(async {
///     let period = Duration::from_millis(1);
///     let mut ticks = map_concurrent(interval(period), 1, async |at| at);
///     let first = ticks.next().await.unwrap();
///     assert_eq!(ticks.next().await, Some(first + period));
/// });
/// assert_eq!(outcome, Outcome::Value(()));
/// ```
impl Stream for Interval {
    type Item = Instant;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Instant>> {
        let Self { schedule, wait, location } = &mut *self;
        let wait = wait.get_or_insert_with(|| Box::pin(Wait::at(location)));
        let due = ready!(schedule.poll(wait.as_mut(), cx));
        wait.as_mut().reset();
        Poll::Ready(Some(due))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (usize::MAX, None)
    }
}
