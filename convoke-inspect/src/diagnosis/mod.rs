//! Diagnosis of programs that are slow or hang: tasks that block their executor, that wait for themselves, or
//! for each other.
//!
//! A [`Watcher`] performs one check at a time, given the current time. A watchdog thread calls it
//! periodically; tests call it by hand. Nothing here runs on the threads of the program: tasks and locks
//! record what they do in `convoke_core::raw::watching` and `convoke_sync::ledger`, and the watcher reads it.
//!
//! | file | contents |
//! | --- | --- |
//! | `watcher.rs`, `watchdog.rs` | one check of everything, and the thread that repeats it |
//! | `stalls.rs` | tasks that block their executor |
//! | `deadlocks.rs`, `snapshot.rs` | tasks that wait for themselves or each other, and the snapshot that shows it |
//! | `idle.rs` | programs in which nothing runs |
//! | `report.rs`, `participant.rs` | the reports, and the tasks in them |
//! | `limits.rs`, `in_tests.rs` | limits, and the diagnosis in tests |

mod deadlocks;
mod idle;
#[cfg(feature = "testing")]
mod in_tests;
mod limits;
mod participant;
mod report;
mod snapshot;
mod stalls;
mod watchdog;
mod watcher;

#[cfg(feature = "testing")]
#[doc(hidden)]
pub use deadlocks::examine;
#[cfg(feature = "testing")]
#[doc(hidden)]
pub use in_tests::in_tests;
pub use participant::Involved;
pub use report::{Abandoned, Deadlock, Entangled, Finding, Futurelock, Owned, Quiet, Stall, StallOver};
pub use watchdog::Diagnosing;
pub use watcher::Watcher;

use core::fmt;
use std::io;
use std::time::Duration;

use limits::Limits;
use watchdog::Hook;

/// Watches the tasks of the process until the returned guard is dropped, and prints problems to the error
/// stream. Use [`Diagnosis`] to change the limits or to handle the reports.
///
/// ```
/// use convoke::prelude::*;
///
/// let _diagnosing = convoke::inspect::diagnose();
/// assert_eq!(block_on(async { 42 }), Outcome::Value(42));
/// ```
///
/// # Panics
/// If the system cannot start a thread.
#[track_caller]
pub fn diagnose() -> Diagnosing {
    Diagnosis::new().start().expect("the system could not start the watchdog thread")
}

/// A builder for a diagnosis of the tasks of the process.
///
/// - **Stalls**: a task is in one poll for longer than the [limit](Diagnosis::stall_limit), and so delays all
///   tasks queued behind it. It is reported while it lasts, with the locations where it was started and last
///   waited; and once more when it is over.
/// - **Futurelocks**: a future was granted a lock or permit and is not polled, while its task waits for that
///   same lock. Such a program hangs silently. It is reported when it is certain.
/// - **Deadlocks**: tasks wait for locks and permits that only other waiting tasks hold, for longer than the
///   [limit](Diagnosis::deadlock_limit). The holder of a lock that was taken without waiting is known only if
///   [every lock](Diagnosis::every_lock) is watched.
/// - **Abandoned children**: the handle of a child was dropped before the child ran, as `let _ = s.spawn_future(..)` does.
/// - **Idle programs**, if [enabled](Diagnosis::quiet_limit): no task has run for the limit, and tasks wait.
///   An event from outside may still come, so this is only a hint.
///
/// A thread checks all of this periodically. Each poll of a task costs three more instructions if there is no
/// diagnosis; with one, tasks also record where they last waited. A lock costs a few dozen instructions when
/// it is first used, and, while it is watched, when a task has to wait for it.
///
/// Stalls are detected in polls of tasks, not in other work of an executor. They are not detected in a task
/// that has polled another one inside its own poll (by an `InlineExecutor`), until its next poll. At most
/// three diagnoses can detect stalls at the same time.
///
/// ```
/// use std::time::Duration;
/// use convoke::inspect::Diagnosis;
/// use convoke::prelude::*;
///
/// let (tell, told) = std::sync::mpsc::channel();
/// let diagnosing = Diagnosis::new()
///     .stall_limit(Duration::from_millis(20))
///     .report(move |report| drop(tell.send(report.to_string())))
///     .start()
///     .unwrap();
/// let busy = async move {
///     // Blocks the thread until the stall is reported.
///     told.recv().unwrap()
/// };
/// let pool = ThreadPool::new(1).unwrap();
/// let said = launch(&pool.executor()).name("busy").start(busy).wait().unwrap();
/// assert!(said.starts_with("stall: `busy`"), "{said}");
/// drop(diagnosing);
/// ```
#[must_use = "nothing is watched before it is started"]
pub struct Diagnosis {
    limits: Limits,
    hook: Hook,
}

impl Diagnosis {
    /// Creates a diagnosis with limits for production that prints reports to the error stream.
    pub fn new() -> Self {
        Self { limits: Limits::new(), hook: Box::new(watchdog::print) }
    }

    /// Sets the maximum duration of one poll of a task. The default is 100 ms.
    pub fn stall_limit(mut self, limit: Duration) -> Self {
        self.limits.stall = limit;
        self
    }

    /// Sets for how long tasks may wait for each other in a cycle before it is reported as a deadlock. The
    /// default is 10 s: a task that waits in one branch may be about to release in another branch what others
    /// wait for.
    pub fn deadlock_limit(mut self, limit: Duration) -> Self {
        self.limits.deadlock = limit;
        self
    }

    /// Sets for how long no task may run while tasks wait. There is no limit by default, because a server
    /// without clients is idle, too.
    pub fn quiet_limit(mut self, limit: Duration) -> Self {
        self.limits.quiet = Some(limit);
        self
    }

    /// Sets whether to record holders of locks and permits that did not have to wait. This makes every lock
    /// that is first used from now on several times slower. It is meant for tests, where it is enabled by
    /// default.
    pub fn every_lock(mut self, every_lock: bool) -> Self {
        self.limits.every_lock = every_lock;
        self
    }

    /// Sets the hook that handles reports, instead of printing them to the error stream. The watchdog thread
    /// calls it and catches its panics.
    pub fn report(mut self, hook: impl Fn(&Finding) + Send + 'static) -> Self {
        self.hook = Box::new(hook);
        self
    }

    /// Starts the watchdog thread. It ends when the returned guard is dropped.
    ///
    /// # Errors
    /// If the system cannot start a thread.
    pub fn start(self) -> io::Result<Diagnosing> {
        let pause = self.limits.pause();
        let watcher = Watcher::new(&self.limits);
        if !watcher.detects_stalls() {
            eprintln!("convoke: three diagnoses already detect stalls; this one does not");
        }
        Diagnosing::start(watcher, pause, self.hook)
    }

    /// Returns a watcher that the caller drives, without a thread and a clock.
    ///
    /// ```
    /// use std::time::{Duration, Instant};
    /// use convoke::inspect::{Diagnosis, Finding};
    /// use convoke::prelude::*;
    ///
    /// let mut watcher = Diagnosis::new().by_hand();
    /// let now = Instant::now();
    /// let busy = async move {
    ///     watcher.check(now);
    ///     watcher.check(now + Duration::from_secs(1))
    /// };
    /// let pool = ThreadPool::new(1).unwrap();
    /// let reports = launch(&pool.executor()).name("busy").start(busy).wait().unwrap();
    /// let [Finding::Stall(stall)] = &reports[..] else { panic!("one stall") };
    /// assert_eq!(stall.task.name.as_deref(), Some("busy"));
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
