//! `Main`: a program on a runtime. `#[convoke::main]` calls it.

use core::future::Future;
use core::panic::Location;
use core::time::Duration;
use std::process::{self, ExitCode, Termination};

use convoke_core::env::Changes;
use convoke_core::{FrameAllocator, Outcome, StopSource};
use convoke_net::net::resolver::Names;
use convoke_task::raw::BoxedFuture;

use super::ending::{Ending, ProgramStopped};
use super::supervision::{Limits, SECOND_SIGNAL_AFTER, Supervision};
use super::{Runtime, RuntimeBuilder};

/// The default time that clean-up may take after a signal.
pub const STOP_GRACE: Duration = Duration::from_secs(30);

/// Runs a program on a [`Runtime`]: `#[convoke::main]` without the attribute, with the same options.
///
/// # Signals
/// SIGINT and SIGTERM ask the program to stop, with
/// [`StopReason::Signal`](convoke_core::StopReason::Signal). Everything unwinds with its clean-up. Then the
/// process prints which signal it was and where the program waited, and exits with 128 plus the number of the
/// signal: 130 for SIGINT, 143 for SIGTERM.
///
/// The process is ended *hard* if clean-up takes longer than the [grace period](Main::grace), or if a signal
/// comes again, later than [`SECOND_SIGNAL_AFTER`] after the first one. It then prints the tasks that still
/// run and where they wait, and exits with [`ENDED_HARD`](super::ENDED_HARD). Signals that come together, as
/// `timeout` and some supervisors send them, are one request.
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
    limits: Limits,
}

impl Main {
    /// Creates one with as many contexts as there are cores.
    pub fn new() -> Self {
        let limits = Limits { grace: STOP_GRACE, second_signal_after: SECOND_SIGNAL_AFTER };
        Self { runtime: Runtime::builder(), limits }
    }

    /// Sets the number of I/O contexts: see [`RuntimeBuilder::contexts`].
    pub fn contexts(mut self, contexts: usize) -> Self {
        self.runtime = self.runtime.contexts(contexts);
        self
    }

    /// Sets the number of threads of the pool: see [`RuntimeBuilder::pool_threads`].
    #[cfg(feature = "pool")]
    pub fn pool_threads(mut self, threads: usize) -> Self {
        self.runtime = self.runtime.pool_threads(threads);
        self
    }

    /// Sets the maximum number of threads for blocking work: see [`RuntimeBuilder::blocking_threads`].
    pub fn blocking_threads(mut self, threads: usize) -> Self {
        self.runtime = self.runtime.blocking_threads(threads);
        self
    }

    /// Sets how long a context polls for events before it sleeps: see [`RuntimeBuilder::spin`].
    pub fn spin(mut self, longest: Duration) -> Self {
        self.runtime = self.runtime.spin(longest);
        self
    }

    /// Sets how long a context polls for events before it sleeps, in microseconds: see
    /// [`RuntimeBuilder::spin`].
    pub fn spin_micros(self, longest: u64) -> Self {
        self.spin(Duration::from_micros(longest))
    }

    /// Sets how host names are resolved: see [`RuntimeBuilder::names`].
    pub fn names(mut self, names: impl Names) -> Self {
        self.runtime = self.runtime.names(names);
        self
    }

    /// Sets the frame allocator of all that runs on the contexts and the pool and names none: see
    /// [`RuntimeBuilder::allocator`].
    pub fn allocator(mut self, allocator: FrameAllocator) -> Self {
        self.runtime = self.runtime.allocator(allocator);
        self
    }

    /// Sets how long clean-up may take after a signal, before the process is ended hard. Default:
    /// [`STOP_GRACE`].
    pub fn grace(mut self, grace: Duration) -> Self {
        self.limits.grace = grace;
        self
    }

    /// Sets the grace period in seconds: see [`grace`](Main::grace).
    pub fn grace_seconds(self, seconds: u64) -> Self {
        self.grace(Duration::from_secs(seconds))
    }

    /// Sets for how long after the first signal further ones are ignored. A later one ends the process hard.
    /// Default: [`SECOND_SIGNAL_AFTER`].
    pub fn second_signal_after(mut self, interval: Duration) -> Self {
        self.limits.second_signal_after = interval;
        self
    }

    /// Runs the program, and returns its output. If it was stopped, the process ends here, with the exit status
    /// that [`exit_code`](Main::exit_code) would return.
    ///
    /// # Panics
    /// If the program panics, or if the system has no threads or descriptors for its runtime.
    #[track_caller]
    pub fn run<F: Future<Output: Termination>>(self, program: impl FnOnce() -> F) -> F::Output {
        match self.end(program) {
            Ending::Value(value) => value,
            // There is no value to return. Everything that the program started has ended, also its threads.
            Ending::Stopped(stopped) => process::exit(i32::from(stopped.report())),
        }
    }

    /// Runs the program, and returns its exit status.
    ///
    /// # Panics
    /// As [`run`](Main::run).
    #[track_caller]
    pub fn exit_code<F: Future<Output: Termination>>(self, program: impl FnOnce() -> F) -> ExitCode {
        self.end(program).exit_code()
    }

    /// Runs the program to its end. Its first task shows the location of the caller.
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
            self.runtime.build().unwrap_or_else(|error| panic!("no runtime could be created: {error}"));
        let source = StopSource::new();
        let supervision = Supervision::begin(&runtime, source.clone(), self.limits, Location::caller());
        let supervised = Supervised { runtime, supervision };
        let outcome = supervised.runtime.block_on_boxed(Changes::new().stop_token(source.token()), program());
        let waited = supervised.supervision.waited();
        drop(supervised);
        match outcome {
            Outcome::Value(()) => Ending::Value(()),
            Outcome::Stopped => Ending::Stopped(ProgramStopped { reason: source.token().reason(), waited }),
            Outcome::Error(never) => never.absurd(),
            Outcome::Panicked(panic) => panic.resume(),
        }
    }
}

/// A program that stores what it returns.
type Program<'a> = BoxedFuture<'a>;

/// Ends in this order, also if the program panics: services close under supervision, so that a signal can
/// still end one that hangs.
struct Supervised {
    runtime: Runtime,
    supervision: Supervision,
}

impl Default for Main {
    fn default() -> Self {
        Self::new()
    }
}
