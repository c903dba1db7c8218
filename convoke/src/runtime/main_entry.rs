//! A program on a runtime: what `#[convoke::main]` calls.

use core::future::Future;
use core::pin::Pin;
use core::time::Duration;
use std::process::{self, ExitCode, Termination};

use convoke_core::{Outcome, StopSource};

use super::ending::status_of_stop;
use super::supervision::Supervision;
use super::{Ending, Runtime, RuntimeBuilder};

/// How long a program's clean-up may take after a signal, if nobody has said otherwise.
pub const STOP_GRACE: Duration = Duration::from_secs(30);

/// Runs a program: `#[convoke::main]` without the attribute.
///
/// SIGINT and SIGTERM ask it to stop, with [`StopReason::Signal`](convoke_core::StopReason::Signal); everything unwinds with its clean-up. A
/// second signal, or clean-up that takes longer than the grace period, ends the process hard: it names what was still running
/// and where it waits, and its exit status is [`ENDED_HARD`](super::ENDED_HARD).
///
/// ```no_run
/// use convoke::task::forever;
/// use convoke::runtime::Main;
///
/// fn main() -> std::process::ExitCode {
///     Main::new().contexts(1).exit_code(async || {
///         println!("Ctrl-C ends it");
///         forever().await
///     })
/// }
/// ```
#[derive(Clone, Debug)]
#[must_use = "nothing is run before `run`"]
pub struct Main {
    runtime: RuntimeBuilder,
    grace: Duration,
}

impl Main {
    /// With as many contexts, and as many threads in the pool, as there are cores.
    pub fn new() -> Self {
        Self { runtime: Runtime::builder(), grace: STOP_GRACE }
    }

    /// How many I/O contexts.
    pub fn contexts(mut self, contexts: usize) -> Self {
        self.runtime = self.runtime.contexts(contexts);
        self
    }

    /// How many threads the pool has.
    pub fn pool(mut self, threads: usize) -> Self {
        self.runtime = self.runtime.pool_threads(threads);
        self
    }

    /// How long clean-up may take after a signal, before the program ends hard.
    pub fn grace_seconds(mut self, seconds: u64) -> Self {
        self.grace = Duration::from_secs(seconds);
        self
    }

    /// Runs the program, and returns what it returns. If it was stopped, the process ends here, with the exit status that
    /// [`exit_code`](Main::exit_code) would return.
    ///
    /// # Panics
    /// If the program does, or if the system has no threads or descriptors for its runtime.
    #[track_caller]
    pub fn run<F: Future<Output: Termination>>(self, program: impl FnOnce() -> F) -> F::Output {
        match self.end(program) {
            Ending::Value(value) => value,
            // There is no value to return. All that the program has started has ended, and its threads too.
            Ending::Stopped(reason) => process::exit(i32::from(status_of_stop(reason))),
        }
    }

    /// Runs the program, and returns its exit status.
    ///
    /// # Panics
    /// As [`run`](Main::run).
    #[track_caller]
    pub fn exit_code<F: Future<Output: Termination>>(self, program: impl FnOnce() -> F) -> ExitCode {
        self.end(program).report()
    }

    /// Called where the program was written, for people who look: there its first task is started.
    #[track_caller]
    fn end<F: Future<Output: Termination>>(self, program: impl FnOnce() -> F) -> Ending<F::Output> {
        let mut returned = None;
        let ended = self.supervise(Box::new(|| {
            let program = program();
            Box::pin(async { returned = Some(program.await) })
        }));
        match ended {
            Ending::Value(()) => Ending::Value(returned.expect("a program that has ended has returned")),
            Ending::Stopped(reason) => Ending::Stopped(reason),
        }
    }

    /// Runs a program without a type: the runtime is compiled with this crate, and not again with every program.
    #[track_caller]
    fn supervise<'a>(self, program: Box<dyn FnOnce() -> Program<'a> + 'a>) -> Ending<()> {
        let runtime =
            self.runtime.build().unwrap_or_else(|error| panic!("no runtime could be made: {error}"));
        let source = StopSource::new();
        let supervision = Supervision::begin(&runtime, source.clone(), self.grace);
        let supervised = Supervised { runtime, _supervision: supervision };
        let outcome = supervised.runtime.run_stoppable(source.token(), program());
        drop(supervised);
        match outcome {
            Outcome::Value(()) => Ending::Value(()),
            Outcome::Stopped => Ending::Stopped(source.token().reason()),
            Outcome::Error(never) => never.absurd(),
            Outcome::Panicked(panic) => panic.resume(),
        }
    }
}

/// A program that stores what it returns.
type Program<'a> = Pin<Box<dyn Future<Output = ()> + 'a>>;

/// Ends in this order, also when the program panics: what services take at their end is supervised, too, or no signal would end it.
struct Supervised {
    runtime: Runtime,
    _supervision: Supervision,
}

impl Default for Main {
    fn default() -> Self {
        Self::new()
    }
}
