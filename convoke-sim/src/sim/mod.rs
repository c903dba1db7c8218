//! `Sim`: a simulation, as a test sees it. The test names hosts, gives them programs, changes the network now
//! or at a later time, and runs it. The test's thread runs everything; no part of this module is used by
//! another thread.
//!
//! | file | contents |
//! | --- | --- |
//! | `host.rs` | the settings of a host |
//! | `program.rs` | the program that runs on a host |
//! | `control.rs`, `clocks.rs` | actions on hosts and network, and on clocks |
//! | `checks.rs` | invariants and final checks |
//! | `run.rs` | the loop |
//! | `crashed.rs` | programs that did not end by themselves |
//! | `report.rs`, `failure.rs` | the result of a run |
//! | `simulate.rs` | one program on one host |

mod checks;
mod clocks;
mod control;
mod crashed;
mod failure;
mod host;
mod program;
mod report;
mod run;
mod simulate;

pub use failure::SimFailure;
pub use host::HostBuilder;
pub use program::{Ending, Verdict};
pub use report::{HostReport, SimReport};
pub use simulate::{simulate, simulate_replayed_by};

use core::fmt;
use core::net::Ipv4Addr;
use core::time::Duration;
use std::collections::BTreeMap;
use std::sync::Arc;

use convoke_testing::Probe;

use crate::disk::Disk;
use crate::world::{HostId, World};
use checks::Check;
use program::{Program, Running};

/// The default of [`Sim::step_limit`]: the run fails after this many pieces of work.
pub const STEP_LIMIT: usize = 1_000_000;
/// The default of [`Sim::time_limit`]: the run fails after this much simulated time.
pub const TIME_LIMIT: Duration = Duration::from_secs(24 * 60 * 60);

/// A simulation: hosts with programs, a network between them, and a clock that jumps when all programs wait.
/// The seed and the programs determine everything that happens.
///
/// Programs are ordinary ones: they use `convoke::net` and `convoke::time`, find each other by name, and do
/// not know of the simulation. All of them run on the thread that calls [`run`](Sim::run), one piece of work
/// at a time; the seed decides which one is next. Time passes only when no task can run, and then at once.
///
/// A program must wait only for the simulation: not for threads of its own, and not for
/// [`blocking`](convoke_task::blocking()) work. Decisions that depend on the order of a `HashMap` or on the
/// machine's clock do not follow the seed.
///
/// ```
/// use std::time::Duration;
/// use convoke::net::{TcpListener, TcpStream};
/// use convoke::prelude::*;
/// use convoke::sim::Sim;
///
/// async fn server() -> std::io::Result<()> {
///     let listener = TcpListener::bind("0.0.0.0:7").await?;
///     loop {
///         let (stream, _) = listener.accept().await?;
///         let mut word = [0; 5];
///         stream.read_exact(&mut word).await?;
///         stream.write_all(&word).await?;
///     }
/// }
///
/// async fn client() -> std::io::Result<()> {
///     sleep(Duration::from_secs(1)).await;
///     let stream = TcpStream::connect("server:7").await?;
///     stream.write_all(b"hello").await?;
///     let mut word = [0; 5];
///     stream.read_exact(&mut word).await?;
///     assert_eq!(&word, b"hello");
///     Ok(())
/// }
///
/// let mut sim = Sim::new(42);
/// sim.host("server").daemon().run(server);
/// sim.host("client").run(client);
/// sim.at(Duration::from_millis(500), |sim| sim.partition("client", "server"));
/// sim.at(Duration::from_secs(3), |sim| sim.heal("client", "server"));
/// let report = sim.run();
/// assert!(report.elapsed() > Duration::from_secs(3));
/// ```
#[must_use = "a simulation does nothing until it is run"]
pub struct Sim {
    seed: u64,
    world: Arc<World>,
    /// Indexed by `HostId`.
    programs: Vec<Program>,
    /// Programs whose hosts have crashed. They stay in memory until the run ends.
    crashed: Vec<Running>,
    /// Number of host runs so far, of all hosts.
    host_runs: u64,
    actions: BTreeMap<(Duration, usize), Action>,
    actions_added: usize,
    probe: Probe,
    running: bool,
    /// True if the programs or the pending actions have changed, so that the run may be over.
    has_changed: bool,
    /// The host that ran last, until it is known whether its program has ended.
    ran_last: Option<HostId>,
    steps: usize,
    step_limit: usize,
    time_limit: Duration,
    disturbance: Disturbance,
    invariants: Vec<Check>,
    last_checks: Vec<Check>,
    /// The failure of a host to start.
    start_failure: Option<String>,
}

type Action = Box<dyn FnOnce(&mut Sim)>;

/// The disturbance that an exploration applies to a run.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Disturbance {
    /// The host that is requested to stop, and the step before which it is.
    pub(crate) stop: Option<(HostId, usize)>,
    /// True if a program may return an error because of the disturbance.
    pub(crate) errors_are_fine: bool,
}

impl Sim {
    /// Creates a simulation without hosts. The same seed and the same programs produce the same run.
    pub fn new(seed: u64) -> Self {
        let world = World::new(seed);
        world.with(|state| state.trace.print(|| format!("seed {seed}:")));
        Self {
            seed,
            world,
            programs: Vec::new(),
            crashed: Vec::new(),
            host_runs: 0,
            actions: BTreeMap::new(),
            actions_added: 0,
            probe: Probe::new(),
            running: false,
            has_changed: true,
            ran_last: None,
            steps: 0,
            step_limit: STEP_LIMIT,
            time_limit: TIME_LIMIT,
            disturbance: Disturbance::default(),
            invariants: Vec::new(),
            last_checks: Vec::new(),
            start_failure: None,
        }
    }

    /// Returns the seed.
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// Returns the simulated time since the start.
    pub fn now(&self) -> Duration {
        self.world.now()
    }

    /// Returns a number below `bound` that follows the seed, for tests that vary with it.
    ///
    /// # Panics
    /// If `bound` is zero.
    pub fn random(&mut self, bound: usize) -> usize {
        assert_ne!(bound, 0, "`bound` must be greater than zero");
        self.world.with(|state| state.random.below(bound))
    }

    /// Returns the probe with which programs make promises: clean-up that must run, values that must be
    /// dropped. A run that breaks a promise fails. The promises of a host that crashes need not be kept.
    pub fn probe(&self) -> Probe {
        self.probe.clone()
    }

    /// Returns a builder for the host of this name, which is added if it is new.
    pub fn host(&mut self, name: &str) -> HostBuilder<'_> {
        let host = self.find_or_add(name);
        HostBuilder::new(self, host)
    }

    /// Creates a disk for the host of this name, which is added if it is new. The host finds it again after a
    /// crash, with all [synced](Disk::sync) writes. Pass it to the host's program; the test may read it, too.
    pub fn disk<T: Clone + Send + 'static>(&mut self, host: &str, value: T) -> Disk<T> {
        let host = self.find_or_add(host);
        Disk::new(self.world.clone(), host, value)
    }

    fn find_or_add(&mut self, name: &str) -> HostId {
        let found = self.world.with(|state| state.find_host(name));
        found.unwrap_or_else(|| {
            let name: Arc<str> = name.into();
            self.programs.push(Program::new(name.clone()));
            self.world.with(|state| state.add_host(name))
        })
    }

    /// Returns the address of a host.
    ///
    /// # Panics
    /// If there is no such host.
    #[track_caller]
    pub fn address(&self, name: &str) -> Ipv4Addr {
        self.find(name).address()
    }

    /// Calls `action` when `time` has passed since the start.
    pub fn at(&mut self, time: Duration, action: impl FnOnce(&mut Sim) + 'static) {
        self.actions.insert((time, self.actions_added), Box::new(action));
        self.actions_added += 1;
    }

    /// Sets the maximum number of pieces of work; the run fails if it takes more. The default is
    /// [`STEP_LIMIT`].
    pub fn step_limit(&mut self, steps: usize) {
        self.step_limit = steps;
    }

    /// Sets the maximum simulated time; the run fails if it takes longer. The default is [`TIME_LIMIT`].
    pub fn time_limit(&mut self, time: Duration) {
        self.time_limit = time;
    }

    pub(crate) fn world(&self) -> &World {
        &self.world
    }

    pub(crate) fn disturb(&mut self, disturbance: Disturbance) {
        self.disturbance = disturbance;
    }

    #[track_caller]
    pub(crate) fn find(&self, name: &str) -> HostId {
        let found = self.world.with(|state| state.find_host(name));
        found.unwrap_or_else(|| {
            let names: Vec<&str> = self.programs.iter().map(|program| &*program.name).collect();
            panic!("there is no host `{name}`; the hosts are: {}", names.join(", "))
        })
    }
}

impl fmt::Debug for Sim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sim")
            .field("seed", &self.seed)
            .field("now", &self.now())
            .field("hosts", &self.programs.iter().map(|program| &program.name).collect::<Vec<_>>())
            .finish_non_exhaustive()
    }
}
