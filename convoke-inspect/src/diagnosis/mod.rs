//! Finding out what is wrong with a program that is slow or hangs: tasks that hold their executor, that wait for themselves,
//! or for each other.
//!
//! `slot.rs` is which task each thread polls, and `stalls.rs` who does so for too long; `ledger.rs` is who waits for permits
//! and who has them, `scene.rs` what one sees there, and `entangled.rs` who so waits for ever; `quiet.rs` says if nothing happens at all. `watcher.rs` looks at all of
//! it, `watchdog.rs` is the thread that does so again and again, `report.rs` what is said.

mod entangled;
#[cfg(feature = "testing")]
mod in_tests;
mod involved;
mod limits;
mod quiet;
mod report;
mod scene;
mod stalls;
mod watchdog;
mod watcher;

#[cfg(feature = "testing")]
#[doc(hidden)]
pub use entangled::examine;
#[cfg(feature = "testing")]
#[doc(hidden)]
pub use in_tests::in_tests;
pub use involved::Involved;
pub use report::{Deadlock, Entangled, Futurelock, Owned, Quiet, Report, Stall, StallOver};
pub use watchdog::Diagnosing;
pub use watcher::Watcher;

use core::fmt;
use std::io;
use std::time::Duration;

use limits::Limits;
use watchdog::Hook;

/// Watches the tasks of the process until what is returned is dropped, and prints to the error stream what is wrong with
/// them. The same as [`Diagnosis::new().start()`](Diagnosis), where one can say more.
///
/// ```
/// use convoke::prelude::*;
///
/// let _diagnosing = convoke::inspect::diagnose();
/// assert_eq!(block_on(async { 42 }), Outcome::Value(42));
/// ```
///
/// # Panics
/// If the system has no thread left.
#[track_caller]
pub fn diagnose() -> Diagnosing {
    Diagnosis::new().start().expect("the system has a thread for the watchdog")
}

/// How the tasks of the process are watched.
///
/// - **Stalls**: a task is in one poll for longer than the [limit](Diagnosis::stall_limit), and so holds up all that is queued
///   behind it. It is named while it is stuck, with where it was started and where it waited last; and once more when it is
///   over.
/// - **Futurelocks**: a future was handed a lock or permit and is not polled, while its task waits for that same lock. Such a
///   program hangs without a word; here it is told what it waits for. It is reported when it is certain.
/// - **Deadlocks**: tasks wait for locks and permits that only others of them have, and have done so for longer than the
///   [limit](Diagnosis::deadlock_limit). Of locks that were taken without waiting the holder is known only if
///   [every lock](Diagnosis::every_lock) is watched.
/// - **Quiet**, [if asked for](Diagnosis::quiet_limit): nothing has run for long, and tasks wait. Whether something will come
///   from outside cannot be known, so this is no verdict.
///
/// A thread looks at all of this now and then. Tasks pay three instructions for each poll if nobody watches, and keep
/// where they waited last in memory of their own while somebody does; a lock pays a few dozen when it is used for the first time,
/// and while it is watched when somebody has to wait.
///
/// A stall is seen where tasks are polled by a thread, not in other work of an executor; and not in a task that was polling
/// another one on top of itself since (by an `InlineExecutor`), before it is polled again. Only three can look for stalls at the
/// same time.
///
/// ```
/// use std::time::Duration;
/// use convoke::inspect::{Diagnosis, Report};
/// use convoke::sender::prelude::*;
///
/// let (tell, told) = std::sync::mpsc::channel();
/// let diagnosing = Diagnosis::new()
///     .stall_limit(Duration::from_millis(20))
///     .report(move |report| drop(tell.send(report.to_string())))
///     .start()
///     .unwrap();
/// let busy = async move {
///     // Holds the thread until it was told of that.
///     told.recv().unwrap()
/// };
/// let said = sync_wait(task(busy).named("busy")).unwrap();
/// assert!(said.starts_with("stall: `busy`"), "{said}");
/// drop(diagnosing);
/// ```
#[must_use = "nothing is watched before it is started"]
pub struct Diagnosis {
    limits: Limits,
    hook: Hook,
}

impl Diagnosis {
    /// With limits for production, and reports to the error stream.
    pub fn new() -> Self {
        Self { limits: Limits::new(), hook: Box::new(watchdog::print) }
    }

    /// For how long a task may hold its executor. 100 ms if nothing is said.
    pub fn stall_limit(mut self, limit: Duration) -> Self {
        self.limits.stall = limit;
        self
    }

    /// For how long tasks may wait for each other in a ring before it is called a deadlock. 10 s if nothing is said: a task
    /// that waits in one branch may be about to give back in another what it is waited for.
    pub fn deadlock_limit(mut self, limit: Duration) -> Self {
        self.limits.deadlock = limit;
        self
    }

    /// For how long nothing may run while tasks wait. There is no such limit if nothing is said: a server without guests is
    /// quiet, too.
    pub fn quiet_limit(mut self, limit: Duration) -> Self {
        self.limits.quiet = Some(limit);
        self
    }

    /// Whether holders of locks and permits are noted who did not have to wait. It makes every lock that is used for the
    /// first time from now on several times as slow, and is meant for tests, where it is so.
    pub fn every_lock(mut self, every_lock: bool) -> Self {
        self.limits.every_lock = every_lock;
        self
    }

    /// What is done with a report, instead of printing it to the error stream. It is called by the thread that watches; a panic
    /// is caught.
    pub fn report(mut self, hook: impl Fn(&Report) + Send + 'static) -> Self {
        self.hook = Box::new(hook);
        self
    }

    /// Starts the thread that looks. It ends when what is returned is dropped.
    ///
    /// # Errors
    /// If the system has no thread left.
    pub fn start(self) -> io::Result<Diagnosing> {
        let pause = self.limits.pause();
        let watcher = Watcher::new(&self.limits);
        if !watcher.sees_stalls() {
            eprintln!("convoke: several threads look for stalls already; this diagnosis does not");
        }
        Diagnosing::start(watcher, pause, self.hook)
    }

    /// Without a thread and a clock: the caller looks, and says what time it is. Reports come back from there.
    ///
    /// ```
    /// use std::time::{Duration, Instant};
    /// use convoke::inspect::{Diagnosis, Report};
    /// use convoke::sender::prelude::*;
    ///
    /// let mut watcher = Diagnosis::new().by_hand();
    /// let now = Instant::now();
    /// let busy = async move {
    ///     watcher.look(now);
    ///     watcher.look(now + Duration::from_secs(1))
    /// };
    /// let reports = sync_wait(task(busy).named("busy")).unwrap();
    /// assert!(matches!(&reports[..], [Report::Stall(stall)] if stall.task.name.as_deref() == Some("busy")));
    /// ```
    pub fn by_hand(self) -> Watcher {
        Watcher::new(&self.limits)
    }
}

impl Default for Diagnosis {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Diagnosis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Diagnosis").field("limits", &self.limits).finish_non_exhaustive()
    }
}
