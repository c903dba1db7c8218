//! `sleep(duration)` and `sleep_until(instant)`.

use core::future::IntoFuture;
use std::time::{Duration, Instant};

use super::{Sleeping, When};

/// Waits for `duration`: `sleep(duration).await`. It is also a sender (feature `sender`). The duration is
/// counted from its start.
///
/// Use this if one wait is needed. Use [`interval`](super::interval()) for regular ones, and [`sleep_until`]
/// for a time that is known.
///
/// - *Completes with* `()`, and not before its time; or as stopped as soon as a stop is requested, or if the
///   executor is dropped.
/// - *If dropped* before it was started, nothing happens.
/// - *Runs on* the executor of its environment. If the time was already reached, or a stop was already
///   requested, it completes at once. If the executor is inline there is no queue: it completes on the thread
///   of the timers, or of the stop request, and should not hold it up.
///
/// It uses the timers of that executor, or those of a thread that serves all executors without timers.
/// Waiting does not allocate. In a task on a run loop, the duration starts when the loop reads the clock
/// next: before it sleeps, and at regular intervals while it has work. So it is never shorter than requested,
/// and starting it does not read the clock.
///
/// How much longer it takes, on a thread that is idle, depends on the executor. Times are kept exactly. A run
/// loop, and the thread that serves executors without timers, sleep as precisely as the system allows: on
/// Linux some fifty microseconds too long. An I/O context on Linux waits for whole milliseconds, rounded up.
/// Timers that are due within a quarter of a millisecond after others may be called together with later ones.
///
/// ```
/// use std::time::{Duration, Instant};
/// use convoke::prelude::*;
///
/// let first = block_on(async {
///     let start = Instant::now();
///     sleep(Duration::from_millis(2)).await;
///     assert!(start.elapsed() >= Duration::from_millis(2));
///
///     // The first one to complete wins, and the other one is stopped.
///     let late = async {
///         sleep(Duration::from_secs(3600)).await;
///         "time is up"
///     };
///     race((async { "work" }, late)).await
/// });
/// assert_eq!(first, Outcome::Value("work"));
/// ```
#[inline]
pub fn sleep(duration: Duration) -> Sleep {
    Sleep { when: When::After(duration) }
}

/// Waits until `instant`: `sleep_until(instant).await`. It completes at once if that was already reached.
/// Otherwise it is like [`sleep()`].
///
/// Use this if the time is known. Use [`sleep`] if the wait begins now.
///
/// - *Completes with* `()`, and not before its time; or as stopped as soon as a stop is requested, or if the
///   executor is dropped.
/// - *If dropped* before it was started, nothing happens.
/// - *Runs on* the executor of its environment.
///
/// ```
/// use std::time::{Duration, Instant};
/// use convoke::prelude::*;
/// use convoke::time::sleep_until;
///
/// let outcome = block_on(async {
///     // Three steps that do not drift, however long the work between them takes.
///     let start = Instant::now();
///     for step in 1..=3 {
///         let at = start + step * Duration::from_millis(1);
///         sleep_until(at).await;
///         assert!(Instant::now() >= at);
///     }
/// });
/// assert_eq!(outcome, Outcome::Value(()));
/// ```
#[inline]
pub fn sleep_until(instant: Instant) -> Sleep {
    Sleep { when: When::At(instant) }
}

/// Sender of [`sleep()`] and [`sleep_until()`].
#[derive(Clone, Debug)]
#[must_use = "a sleep does nothing until it is awaited, or started as a sender"]
pub struct Sleep {
    when: When,
}

impl Sleep {
    /// Returns its time: for operations that wait without a task.
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
