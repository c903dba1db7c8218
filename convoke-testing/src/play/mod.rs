//! A test body that runs on its own stage until it ends: with a clock that jumps, a report if it hangs, and a
//! check for leaks.
//!
//! `running.rs` is the program on its stage, which the explorations use, too.

mod running;

pub(super) use running::{MOST_STEPS, Running};

use core::fmt;
use core::future::Future;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use convoke_core::{Outcome, Panic, StopToken};

use convoke_inspect::tree::{TaskNode, TaskState, tree};

/// The interval for polling the state of tasks on other executors.
const POLL_INTERVAL: Duration = Duration::from_millis(1);

/// The time that other threads get, when nothing else can happen, before the test is reported to hang.
const LAST_CHANCE: Duration = Duration::from_secs(1);

/// The time after which tasks that run on other executors are reported to hang. No test that passes takes as
/// long.
const HANGS_AFTER: Duration = Duration::from_secs(120);

/// Runs a test body on its own [`Stage`](super::Stage) and returns its output. When there is nothing to do,
/// time jumps to the next timer, so that hours pass at once. The body need not be `Send`.
///
/// # Panics
/// - If the body panics; the panic continues.
/// - If the test hangs, because all tasks wait and no timer is set: with the tree of tasks, and what each
///   waits for.
/// - If the body is stopped.
/// - If it leaves a task, an operation that waits for a timer, or memory of its frame allocator behind.
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
///     let (hour, day) = (Duration::from_secs(3600), Duration::from_secs(86400));
///     timeout(hour, sleep(day)).await.map_err(|_| TooSlow)
/// });
/// assert_eq!(result, Err(TooSlow));
/// ```
///
/// A test in which all tasks wait for each other fails, and reports what each waits for:
///
/// ```should_panic
/// use convoke::prelude::*;
/// use convoke::sync::Mutex;
/// use convoke::testing;
///
/// testing::run(async {
///     let mutex = Mutex::new(());
///     let _held = mutex.lock().await;
///     mutex.lock().await; // the test hangs: `test` (…) waits at src/lib.rs:8:11
/// });
/// ```
#[track_caller]
pub fn run<F: Future + 'static>(body: F) -> F::Output {
    Play::new().run(body)
}

/// A builder for the run of a test body: see [`run()`].
///
/// ```
/// use std::time::Duration;
/// use convoke::prelude::*;
/// use convoke::testing::Play;
///
/// let play = Play::new().name("asks a thread").patience(Duration::from_secs(60));
/// let answer = play.run(async { blocking(|_| 42).await });
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
    /// Creates a builder with the defaults: the name `test`, no stop token, no patience, and a leak check.
    pub fn new() -> Self {
        Self { name: "test".into(), token: StopToken::never(), patience: Duration::ZERO, checks_leaks: true }
    }

    /// Sets the name of the body's task.
    pub fn name(mut self, name: impl Into<Arc<str>>) -> Self {
        self.name = name.into();
        self
    }

    /// Sets a token: the body is requested to stop when its source is.
    pub fn stop_token(mut self, token: StopToken) -> Self {
        self.token = token;
        self
    }

    /// Sets how long to wait for other threads, in real time, before time jumps. Use it for a body that waits
    /// for blocking work, for example. The default is zero.
    ///
    /// Tasks of the test that run on other executors are always waited for. And if there is no timer to jump
    /// to, other threads get a second before the test is reported to hang.
    pub fn patience(mut self, patience: Duration) -> Self {
        self.patience = patience;
        self
    }

    /// Disables the check for tasks, timers and memory that the body leaves behind.
    pub fn without_leak_check(mut self) -> Self {
        self.checks_leaks = false;
        self
    }

    /// Runs the body and returns its output.
    ///
    /// # Panics
    /// As [`run()`](run()).
    #[track_caller]
    pub fn run<F: Future + 'static>(self, body: F) -> F::Output {
        let name = self.name.clone();
        let mut running = Running::start(name.clone(), &self.token, body);
        if let Err(failure) = self.run_to_end(&mut running) {
            panic!("{failure}:\n{}", running.give_up());
        }
        let (outcome, left) = running.end();
        let output = match outcome {
            Outcome::Value(output) => output,
            Outcome::Error(never) => never.absurd(),
            Outcome::Panicked(panic) => panic.resume(),
            Outcome::Stopped => panic!("`{name}` was stopped, so it has nothing to return"),
        };
        let complaints = if self.checks_leaks { left.complaints() } else { Vec::new() };
        assert!(complaints.is_empty(), "`{name}` has ended, but {}", complaints.join("; "));
        output
    }

    /// Takes steps until the body has ended. The error says why it has not.
    fn run_to_end<T>(&self, running: &mut Running<T>) -> Result<(), String> {
        let panicked =
            |panic: Panic| format!("a piece of work panicked on its executor: {}", panic.message());
        while !running.has_ended() {
            if running.taken() > MOST_STEPS {
                return Err(format!("the test still runs after {MOST_STEPS} steps"));
            }
            let something_happened = running.run_one().map_err(panicked)?
                || Self::wait_for_others(running, self.patience).map_err(panicked)?
                || running.advance().map_err(panicked)?
                || Self::wait_for_others(running, LAST_CHANCE).map_err(panicked)?;
            if !something_happened {
                return Err("the test hangs: nothing is queued, no timer is set, and all wait".to_owned());
            }
        }
        Ok(())
    }

    /// Waits for other threads. Returns true if they have queued work or ended the test.
    fn wait_for_others<T>(running: &mut Running<T>, patience: Duration) -> Result<bool, Panic> {
        let begin = Instant::now();
        loop {
            let busy = running.find_in(&tree()).is_some_and(is_busy);
            let limit = if busy { HANGS_AFTER } else { patience };
            let left = limit.saturating_sub(begin.elapsed());
            // Checked once more before giving up: work may have arrived after the last check.
            if running.run_one()? || running.has_ended() {
                return Ok(true);
            }
            if left.is_zero() {
                return Ok(false);
            }
            thread::park_timeout(if busy { POLL_INTERVAL } else { left });
        }
    }
}

/// Returns true if a task of the test runs or is queued: on another executor, because the loop is empty.
fn is_busy(task: TaskNode<'_>) -> bool {
    // Iterative, because tasks may nest deeply.
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
