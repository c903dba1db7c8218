//! A test body, run on a stage of its own until it has ended: with a clock that jumps, a report if nothing can happen any
//! more, and a look at what was left behind.
//!
//! `running.rs` is the program on its stage, which explorations use too.

mod running;

pub(super) use running::{MOST_STEPS, Running};

use core::fmt;
use core::future::Future;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use convoke_core::{Outcome, Panic, StopToken};

use convoke_inspect::tree::{TaskNode, TaskState, tree};

/// How often one looks whether tasks on other executors still run, while one waits for them.
const LOOK_AGAIN: Duration = Duration::from_millis(1);

/// How long one waits for other threads, where nothing else can happen, before one says that the test hangs.
const LAST_CHANCE: Duration = Duration::from_secs(1);

/// How long one waits for tasks that run on other executors before one says that they hang. No test that passes comes near
/// it.
const HANGS_AFTER: Duration = Duration::from_secs(120);

/// Runs a test body on a [`Stage`](super::Stage) of its own: time jumps to the next timer when there is nothing to do, so that
/// hours pass at once. It need not be `Send`.
///
/// What the body returns is returned: a test may end with a `Result`, as others may.
///
/// # Panics
/// - If the body panics; the panic goes on.
/// - If nothing can happen any more, because all wait and no timer is set: with the tree of tasks, and what each waits for.
/// - If the body ends by the stopped door.
/// - If it leaves a task, an operation that waits for a time, or memory of its frame allocator behind.
///
/// ```
/// use std::time::Duration;
/// use convoke::prelude::*;
/// use convoke::testing;
///
/// #[derive(Debug, PartialEq)]
/// struct TooSlow;
///
/// let result = testing::run(async {
///     timeout(Duration::from_secs(3600), sleep(Duration::from_secs(86400))).await.map_err(|_| TooSlow)
/// });
/// assert_eq!(result, Err(TooSlow));
/// ```
///
/// A test in which all wait for each other ends, and says who waits for what:
///
/// ```should_panic
/// use convoke::prelude::*;
/// use convoke::sync::Mutex;
/// use convoke::testing;
///
/// testing::run(async {
///     let mutex = Mutex::new(());
///     let _held = mutex.lock().await;
///     mutex.lock().await; // nothing can happen any more: `test` (…) waits at src/lib.rs:8:11
/// });
/// ```
#[track_caller]
pub fn run<F: Future + 'static>(body: F) -> F::Output {
    Play::new().run(body)
}

/// How a test body is to be run: see [`run()`].
///
/// ```
/// use std::time::Duration;
/// use convoke::prelude::*;
/// use convoke::testing::Play;
///
/// let answer = Play::new().name("asks another thread").patience(Duration::from_secs(60)).run(async {
///     blocking(|_| 42).await
/// });
/// assert_eq!(answer, 42);
/// ```
#[derive(Clone)]
#[must_use = "nothing is run before `run`"]
pub struct Play {
    name: Arc<str>,
    token: StopToken,
    patience: Duration,
    checks_leaks: bool,
}

impl Play {
    /// With nothing said.
    pub fn new() -> Self {
        Self { name: "test".into(), token: StopToken::never(), patience: Duration::ZERO, checks_leaks: true }
    }

    /// The name of the body's task, for people who look.
    pub fn name(mut self, name: impl Into<Arc<str>>) -> Self {
        self.name = name.into();
        self
    }

    /// The body is asked to stop when this token's source is.
    pub fn stop_token(mut self, token: StopToken) -> Self {
        self.token = token;
        self
    }

    /// For a body that waits for other threads, blocking work for example: when there is nothing to do here, so long they are
    /// waited for, in real time, before time jumps. Without this not at all, as far as nobody knows of them.
    ///
    /// Tasks of the test that run on other executors, and are known there, are waited for in any case; and if there is no
    /// timer to jump to, other threads have a second before the test is said to hang.
    pub fn patience(mut self, patience: Duration) -> Self {
        self.patience = patience;
        self
    }

    /// What the body leaves behind is nobody's business.
    pub fn without_leak_check(mut self) -> Self {
        self.checks_leaks = false;
        self
    }

    /// Runs the body.
    ///
    /// # Panics
    /// As [`run()`](run()).
    #[track_caller]
    pub fn run<F: Future + 'static>(self, body: F) -> F::Output {
        let name = self.name.clone();
        let mut running = Running::start(name.clone(), &self.token, body);
        if let Err(failure) = self.bring_home(&mut running) {
            panic!("{failure}:\n{}", running.give_up());
        }
        let (outcome, left) = running.end();
        let output = match outcome {
            Outcome::Value(output) => output,
            Outcome::Error(never) => never.absurd(),
            Outcome::Panicked(panic) => panic.resume(),
            Outcome::Stopped => panic!("`{name}` ended by the stopped door, and so has nothing to return"),
        };
        let complaints = if self.checks_leaks { left.complaints() } else { Vec::new() };
        assert!(complaints.is_empty(), "`{name}` has ended, but {}", complaints.join("; "));
        output
    }

    /// Takes steps until the body has ended. The error says why it does not.
    fn bring_home<T>(&self, running: &mut Running<T>) -> Result<(), String> {
        let panicked =
            |panic: Panic| format!("a piece of work panicked on its executor: {}", panic.message());
        while !running.has_ended() {
            if running.taken() > MOST_STEPS {
                return Err(format!("the test still runs after {MOST_STEPS} steps"));
            }
            let something_happened = running.run_one().map_err(panicked)?
                || Self::wait_for_others(running, self.patience).map_err(panicked)?
                || running.go_on().map_err(panicked)?
                || Self::wait_for_others(running, LAST_CHANCE).map_err(panicked)?;
            if !something_happened {
                return Err("the test hangs: nothing is queued, no timer is set, and all wait".to_owned());
            }
        }
        Ok(())
    }

    /// Waits for what other threads may have to say. True if they have said something.
    fn wait_for_others<T>(running: &mut Running<T>, patience: Duration) -> Result<bool, Panic> {
        let begin = Instant::now();
        loop {
            let busy = running.find_in(&tree()).is_some_and(is_busy);
            let limit = if busy { HANGS_AFTER } else { patience };
            let left = limit.saturating_sub(begin.elapsed());
            // Before one gives up: they may have been faster than we looked.
            if running.run_one()? || running.has_ended() {
                return Ok(true);
            }
            if left.is_zero() {
                return Ok(false);
            }
            thread::park_timeout(if busy { LOOK_AGAIN } else { left });
        }
    }
}

/// Whether something runs, or is queued, below. Not here: the loop has nothing to do.
fn is_busy(task: TaskNode<'_>) -> bool {
    // No recursion: tasks may nest deeply.
    task.with_all_below().any(|task| matches!(task.state(), TaskState::Running | TaskState::Queued))
}

impl Default for Play {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Play {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Play")
            .field("name", &self.name)
            .field("patience", &self.patience)
            .field("checks_leaks", &self.checks_leaks)
            .finish_non_exhaustive()
    }
}
