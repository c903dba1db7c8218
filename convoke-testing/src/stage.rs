//! Where a program runs that is tested: a run loop that is moved step by step, and a clock that jumps. Plays and explorations
//! stand on it.

use std::fmt;
use std::sync::Arc;
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use convoke_core::Executor;
use convoke_core::env::Local;
use convoke_core::raw::{OwnerThread, Runnable, Timers};

use super::clock::Clock;
use super::wait_all_blocked::Blocked;
use convoke_exec::RunLoopExecutor;
use convoke_task::current;

/// Followed by all work that is started below the program.
pub(super) static STAGE: Local<Stage> = Local::inherited("stage");

/// The executor of a program that is tested, with its clock: time stands still while there is something to do, and then jumps
/// to the next timer. Programs get one by [`Play`](super::Play) or [`run`](super::run()), and find it by [`Stage::current`].
///
/// ```
/// use std::time::Duration;
/// use convoke::prelude::*;
/// use convoke::testing::{self, Stage};
///
/// testing::run(async {
///     let stage = Stage::current().expect("a test runs on one");
///     sleep(Duration::from_secs(3600)).await;
///     assert_eq!(stage.elapsed(), Duration::from_secs(3600));
/// });
/// ```
#[derive(Clone)]
pub struct Stage {
    run_loop: RunLoopExecutor,
    shared: Arc<Shared>,
}

struct Shared {
    clock: Clock,
    begin: Instant,
    /// The one that runs the loop.
    thread: Thread,
    blocked: Blocked,
}

impl Stage {
    /// A stage over a loop that this thread runs.
    pub(super) fn new(run_loop: RunLoopExecutor) -> Self {
        let clock = Clock::new();
        let begin = clock.now();
        let shared = Shared { clock, begin, thread: thread::current(), blocked: Blocked::new() };
        Self { run_loop, shared: Arc::new(shared) }
    }

    /// The stage that the running task was started on, or something above it; `None` outside of plays and explorations.
    pub fn current() -> Option<Self> {
        current::local(&STAGE)
    }

    /// What the clock says.
    pub fn now(&self) -> Instant {
        self.shared.clock.now()
    }

    /// How much time has passed here since the beginning.
    pub fn elapsed(&self) -> Duration {
        self.now() - self.shared.begin
    }

    /// Whether somebody waits for a time.
    pub(super) fn has_timers(&self) -> bool {
        self.shared.clock.has_timers()
    }

    /// Moves the clock to the next timer and calls it. False if there is none.
    pub(super) fn jump(&self) -> bool {
        self.shared.clock.jump(None)
    }

    pub(super) fn blocked(&self) -> &Blocked {
        &self.shared.blocked
    }
}

#[diagnostic::do_not_recommend]
impl Executor for Stage {
    fn post(&self, runnable: Runnable) {
        self.run_loop.post(runnable);
        // The thread may wait for others, and it is not the loop that sleeps then.
        if self.shared.thread.id() != thread::current().id() {
            self.shared.thread.unpark();
        }
    }

    fn dispatch(&self, runnable: Runnable) -> Option<Runnable> {
        self.run_loop.dispatch(runnable)
    }

    fn owner_thread(&self) -> Option<&OwnerThread> {
        self.run_loop.owner_thread()
    }

    fn timers(&self) -> Option<&dyn Timers> {
        Some(&self.shared.clock)
    }
}

impl PartialEq for Stage {
    fn eq(&self, other: &Self) -> bool {
        self.run_loop == other.run_loop
    }
}

impl fmt::Debug for Stage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stage").field("elapsed", &self.elapsed()).finish_non_exhaustive()
    }
}

/// How much time has passed on the clock of this test. What that clock shows is [`time::now`](convoke_exec::time::now()), as in any task.
///
/// # Panics
/// Outside of tasks that run on a [`Stage`].
///
/// ```
/// use std::time::Duration;
/// use convoke::prelude::*;
/// use convoke::testing;
///
/// testing::run(async {
///     sleep(Duration::from_secs(60)).await;
///     assert_eq!(testing::elapsed(), Duration::from_secs(60));
/// });
/// ```
#[track_caller]
pub fn elapsed() -> Duration {
    here("`testing::elapsed`").elapsed()
}

/// The stage of the running task.
#[track_caller]
pub(super) fn here(what: &str) -> Stage {
    Stage::current().unwrap_or_else(|| {
        panic!("{what} was called outside of a test that runs on a stage: see `convoke::testing::run`")
    })
}
