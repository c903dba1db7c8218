//! The stage of a program under test: a run loop that is driven step by step, and a clock that jumps. `Play`
//! and the explorations use it.

use std::fmt;
use std::sync::Arc;
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use convoke_core::Executor;
use convoke_core::env::Local;
use convoke_core::raw::{OwnerThread, Runnable, Timers};

use super::blocked::Blocked;
use super::clock::Clock;
use convoke_exec::RunLoopExecutor;
use convoke_task::current;

/// Inherited by all work that the program starts.
pub(super) static STAGE: Local<Stage> = Local::inherited("stage");

/// The executor and clock of a program under test. Time stands still while there is work to do, and then
/// jumps to the next timer. [`Play`](super::Play) and [`run`](super::run()) create one; programs find it by
/// [`Stage::current`].
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
    shared: Arc<StageState>,
}

struct StageState {
    clock: Clock,
    begin: Instant,
    /// The thread that runs the loop.
    thread: Thread,
    blocked: Blocked,
}

impl Stage {
    /// Creates a stage over a loop that this thread runs.
    pub(super) fn new(run_loop: RunLoopExecutor) -> Self {
        let clock = Clock::new();
        let begin = clock.now();
        let shared = StageState { clock, begin, thread: thread::current(), blocked: Blocked::new() };
        Self { run_loop, shared: Arc::new(shared) }
    }

    /// Returns the stage that the running task or one of its ancestors was started on; `None` outside tests
    /// that run on one.
    pub fn current() -> Option<Self> {
        current::local(&STAGE)
    }

    /// Returns the time on its clock.
    pub fn now(&self) -> Instant {
        self.shared.clock.now()
    }

    /// Returns the time since its start.
    pub fn elapsed(&self) -> Duration {
        self.now() - self.shared.begin
    }

    /// Returns true if timers are set.
    pub(super) fn has_timers(&self) -> bool {
        self.shared.clock.has_timers()
    }

    /// Moves the clock to the next timer and fires it. Returns false if there is none.
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
        // The thread may be parked outside the loop, waiting for other threads.
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

/// Returns the time since the start of this test, on its clock. The clock itself is
/// [`time::now`](convoke_exec::time::now()), as in any task.
///
/// # Panics
/// Outside tasks that run on a [`Stage`].
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
    current_stage("`testing::elapsed`").elapsed()
}

/// Returns the stage of the running task.
#[track_caller]
pub(super) fn current_stage(what: &str) -> Stage {
    Stage::current().unwrap_or_else(|| {
        panic!("{what} was called outside a test that runs on a `Stage`: see `convoke::testing::run`")
    })
}
