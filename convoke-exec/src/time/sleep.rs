//! `sleep(duration)` and `sleep_until(instant)`: completes when its time has come.

use core::future::IntoFuture;
use std::time::{Duration, Instant};

use super::{Sleeping, When};

/// A sender that completes after this while, counted from its start.
///
/// - *Completes with* `()`, not before its time; stopped as soon as a stop is requested, or if the executor goes away.
/// - *If dropped* before it was started, nothing.
/// - *Runs on* the executor of its environment. A time that has passed already, or a stop that was requested already,
///   completes at once. In an environment whose executor is inline there is no queue: it completes on
///   the thread of the timers, or of the stop request, which should not be held up.
///
/// It waits for the timers of that executor, or of a thread that serves all executors without. Waiting allocates nothing.
/// Awaited in a task on a run loop, it is counted from when the loop looks at the clock next: before it sleeps, and every so
/// often while it has work. So it is never shorter than asked for, and beginning it reads no clock.
///
/// How much longer it is, on a thread that is free, is up to who waits. Times are kept exactly, and a run loop, or the thread that serves
/// all executors without timers, sleeps as exactly as the system lets it: on Linux that is some fifty microseconds too long. An
/// I/O context on Linux waits for whole milliseconds, rounded up. And timers that are due within a quarter of a millisecond after others
/// may be called together.
///
/// ```
/// use std::time::{Duration, Instant};
/// use convoke::sender::prelude::*;
/// use convoke::time::sleep;
///
/// let start = Instant::now();
/// assert_eq!(sync_wait(sleep(Duration::from_millis(2))), Outcome::Value(()));
/// assert!(start.elapsed() >= Duration::from_millis(2));
///
/// // The first one wins, and the other is stopped.
/// let first = when_any((just("work"), sleep(Duration::from_secs(3600)).then(|()| "time is up")));
/// assert_eq!(sync_wait(first), Outcome::Value("work"));
/// ```
#[inline]
pub fn sleep(duration: Duration) -> Sleep {
    Sleep { when: When::After(duration) }
}

/// A sender that completes at this time, or at once if it has passed. All else is as for [`sleep()`].
///
/// - *Completes with* `()`, not before its time; stopped as soon as a stop is requested, or if the executor goes away.
/// - *If dropped* before it was started, nothing.
/// - *Runs on* the executor of its environment.
///
/// ```
/// use std::time::{Duration, Instant};
/// use convoke::sender::prelude::*;
/// use convoke::time::sleep_until;
///
/// // Three steps that do not drift, however long the work between them takes.
/// let start = Instant::now();
/// for step in 1..=3 {
///     let at = start + step * Duration::from_millis(1);
///     assert_eq!(sync_wait(sleep_until(at)), Outcome::Value(()));
///     assert!(Instant::now() >= at);
/// }
/// ```
#[inline]
pub fn sleep_until(instant: Instant) -> Sleep {
    Sleep { when: When::At(instant) }
}

/// See [`sleep()`] and [`sleep_until()`].
#[derive(Clone, Debug)]
#[must_use = "a sender does nothing until it is started"]
pub struct Sleep {
    when: When,
}

impl Sleep {
    /// Returns when it is over: for senders, which wait without a task.
    #[doc(hidden)]
    pub fn when(&self) -> When {
        self.when
    }
}

#[diagnostic::do_not_recommend]
impl IntoFuture for Sleep {
    type Output = ();
    type IntoFuture = Sleeping;

    #[inline]
    #[track_caller]
    fn into_future(self) -> Sleeping {
        Sleeping::new(self.when)
    }
}
