//! The program of a host, and its current stage.

use core::fmt;
use core::future::Future;
use core::panic::Location;
use std::sync::Arc;

use convoke_core::Panic;
use convoke_core::frames::{Bounded, Counting, FrameAllocator};
use convoke_task::{Launch, Launched, ensure};

use crate::host_run::{HostRun, Services};

/// The return type of a host's program: `()`, or a `Result` whose error fails the run.
#[diagnostic::on_unimplemented(
    message = "a host's program cannot return `{Self}`",
    label = "expected a program that returns `()` or `Result<(), E>`",
    note = "the error of a `Result` needs `Debug`; put other results into something that the test shares with the program",
    note = "a program that never returns is an `async fn` that returns `()`"
)]
pub trait Verdict: Send + 'static {
    /// Returns the error as text.
    #[doc(hidden)]
    fn verdict(self) -> Result<(), String>;
}

impl Verdict for () {
    fn verdict(self) -> Result<(), String> {
        Ok(())
    }
}

impl<E: fmt::Debug + Send + 'static> Verdict for Result<(), E> {
    fn verdict(self) -> Result<(), String> {
        self.map_err(|error| format!("{error:?}"))
    }
}

/// The way in which the program of a host ended.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Ending {
    /// It returned.
    Completed,
    /// It returned this error.
    Failed(String),
    /// It was stopped.
    Stopped,
    /// Its host crashed, and was not started again.
    Crashed,
    /// The host had no program.
    Idle,
}

impl fmt::Display for Ending {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Completed => f.write_str("completed"),
            Self::Failed(error) => write!(f, "failed: {error}"),
            Self::Stopped => f.write_str("stopped"),
            Self::Crashed => f.write_str("crashed"),
            Self::Idle => f.write_str("had no program"),
        }
    }
}

type ProgramResult = Result<(), String>;
type Start = Box<dyn FnMut(Launch, Services) -> Launched<ProgramResult>>;

pub(super) struct Program {
    pub(super) name: Arc<str>,
    pub(super) daemon: bool,
    pub(super) memory: Option<usize>,
    pub(super) stage: Stage,
    /// Number of steps of the run after which it last ended.
    pub(super) ended_after: usize,
    /// Number of starts.
    pub(super) starts: usize,
    start: Option<Start>,
    frames: Vec<Counting<FrameAllocator>>,
}

/// The stage of a program.
pub(super) enum Stage {
    /// Not started, or the host has none.
    Idle,
    Running(Running),
    Ended(Ending),
}

/// A program during one run of its host.
pub(super) struct Running {
    pub(super) host_run: HostRun,
    pub(super) launched: Launched<ProgramResult>,
    /// The name of its root task: the host's, at an address that is unique to this run.
    pub(super) name: Arc<str>,
    /// A number that no other run of any host has.
    pub(super) number: u64,
}

impl Program {
    pub(super) fn new(name: Arc<str>) -> Self {
        Self {
            name,
            daemon: false,
            memory: None,
            stage: Stage::Idle,
            ended_after: 0,
            starts: 0,
            start: None,
            frames: Vec::new(),
        }
    }

    pub(super) fn set<F, P>(&mut self, location: &'static Location<'static>, mut program: F)
    where
        F: FnMut() -> P + 'static,
        P: Future<Output: Verdict> + Send + 'static,
    {
        self.start = Some(Box::new(move |launch, services| {
            let program = program();
            launch.location(location).start(async move {
                let close = async |_| services.context().close().await;
                ensure(close, async { program.await.verdict() }).await
            })
        }));
    }

    /// Launches the program, if the host has one.
    pub(super) fn launch(&mut self, host_run: HostRun, number: u64) -> Result<(), Panic> {
        let Some(start) = &mut self.start else { return Ok(()) };
        let memory = match self.memory {
            Some(bytes) => FrameAllocator::new(Bounded::new(bytes)),
            None => FrameAllocator::default(),
        };
        let frames = Counting::new(memory);
        let allocator = FrameAllocator::new(frames.clone());
        self.frames.push(frames);
        self.starts += 1;
        let name: Arc<str> = (*self.name).into();
        let launch = host_run.launch().name(name.clone()).allocator(allocator);
        let services = host_run.services();
        let launched = Panic::catch(|| start(launch, services))?;
        self.stage = Stage::Running(Running { host_run, launched, name, number });
        Ok(())
    }

    pub(super) fn running(&self) -> Option<&Running> {
        match &self.stage {
            Stage::Running(running) => Some(running),
            Stage::Idle | Stage::Ended(_) => None,
        }
    }

    /// Returns true if it has ended and its end is not recorded yet.
    pub(super) fn has_ended(&self) -> bool {
        self.running().is_some_and(|running| running.launched.is_finished())
    }

    /// Returns how it ended.
    pub(super) fn ending(&self) -> Ending {
        match &self.stage {
            Stage::Ended(ending) => ending.clone(),
            Stage::Idle | Stage::Running(_) => Ending::Idle,
        }
    }

    /// Returns the number of allocations of its tasks, over all runs of the host, that were not freed.
    pub(super) fn frames_left(&self) -> usize {
        self.frames.iter().map(Counting::live).sum()
    }
}
