//! `Sim`: a simulation, as a test sees it. Hosts are named and given programs, things are done to the network, now or at a time;
//! then it is run.
//!
//! `host.rs` says what a host is like, `program.rs` is what runs on it, `control.rs` what can be done to hosts and network, `checks.rs` what must be true,
//! `run.rs` the loop, `graves.rs` what becomes of programs that did not end, `report.rs` and `failure.rs` what comes of it.

mod checks;
mod control;
mod crashed;
mod failure;
mod host;
mod program;
mod report;
mod run;
mod simulate;

pub use failure::Failure;
pub use host::HostBuilder;
pub use program::{Ending, Verdict};
pub use report::{HostReport, Report};
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

/// A simulation that is not done before so many pieces of work have run never is, unless [`Sim::step_limit`] says otherwise.
pub const STEP_LIMIT: usize = 1_000_000;
/// The same for the time that passes in it: [`Sim::time_limit`].
pub const TIME_LIMIT: Duration = Duration::from_secs(24 * 60 * 60);

/// Hosts with programs, a network between them, and a clock that jumps when all of them wait. All that happens is a function
/// of the seed and of the programs.
///
/// Programs are ordinary ones: they use `convoke::net` and `convoke::time`, find each other by name, and know nothing of the
/// simulation. All of them run on the thread that calls [`run`](Sim::run), a piece of work at a time; which one is next the
/// seed decides. Time passes only when nobody has anything to do, and then at once.
///
/// What a program waits for must come from the simulation: not from threads of its own, and not from
/// [`blocking`](convoke_task::blocking()) work. What it decides by a map in random order, or by the machine's clock, is no function of the
/// seed.
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
    /// In the order of the hosts.
    programs: Vec<Program>,
    /// Those whose hosts have crashed.
    graves: Vec<Running>,
    /// How many lives there were, of all hosts.
    lives: u64,
    actions: BTreeMap<(Duration, usize), Action>,
    actions_made: usize,
    probe: Probe,
    running: bool,
    steps: usize,
    step_limit: usize,
    time_limit: Duration,
    disturbance: Disturbance,
    invariants: Vec<Check>,
    last_checks: Vec<Check>,
    /// What was wrong when something was done to a host.
    trouble: Option<String>,
}

type Action = Box<dyn FnOnce(&mut Sim)>;

/// What an exploration does to a run.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Disturbance {
    /// This host is asked to stop after so many steps.
    pub(crate) stop: Option<(HostId, usize)>,
    /// Hosts may fail: something is done to them that may make them.
    pub(crate) errors_are_fine: bool,
}

impl Sim {
    /// A simulation without hosts. The same seed and the same programs make the same run.
    pub fn new(seed: u64) -> Self {
        let world = World::new(seed);
        world.with(|state| state.trace.print(|| format!("seed {seed}:")));
        Self {
            seed,
            world,
            programs: Vec::new(),
            graves: Vec::new(),
            lives: 0,
            actions: BTreeMap::new(),
            actions_made: 0,
            probe: Probe::new(),
            running: false,
            steps: 0,
            step_limit: STEP_LIMIT,
            time_limit: TIME_LIMIT,
            disturbance: Disturbance::default(),
            invariants: Vec::new(),
            last_checks: Vec::new(),
            trouble: None,
        }
    }

    /// What it was made with.
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// How much time has passed in it.
    pub fn now(&self) -> Duration {
        self.world.with(|state| state.now)
    }

    /// A number below `bound`, by the seed: for a test that varies by it.
    ///
    /// # Panics
    /// If the bound is zero.
    pub fn random(&mut self, bound: usize) -> usize {
        assert_ne!(bound, 0, "there is no number below zero");
        self.world.with(|state| state.random.below(bound))
    }

    /// What programs promise with: clean-up that is due, things that must be dropped. A run whose promises are not kept has
    /// failed. What a host had promised when it crashed need not be kept.
    pub fn probe(&self) -> Probe {
        self.probe.clone()
    }

    /// The host of this name, which is added if it is new: to say what it is like, and what runs there.
    pub fn host(&mut self, name: &str) -> HostBuilder<'_> {
        let host = self.find_or_add(name);
        HostBuilder::new(self, host)
    }

    /// A disk for the host of this name, which is added if it is new. What is on it the host finds again after a crash, as far as it was
    /// [synced](Disk::sync). To be given to the host's program; the test may read it, too.
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

    /// The address of a host.
    ///
    /// # Panics
    /// If there is no such host.
    #[track_caller]
    pub fn address(&self, name: &str) -> Ipv4Addr {
        self.find(name).address()
    }

    /// Does something when so much time has passed since the beginning.
    pub fn at(&mut self, time: Duration, action: impl FnOnce(&mut Sim) + 'static) {
        self.actions.insert((time, self.actions_made), Box::new(action));
        self.actions_made += 1;
    }

    /// The run fails if it is not over when so many pieces of work have run. [`STEP_LIMIT`] if nothing is said.
    pub fn step_limit(&mut self, steps: usize) {
        self.step_limit = steps;
    }

    /// The run fails if it is not over after this time. [`TIME_LIMIT`] if nothing is said.
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
            panic!("there is no host `{name}`, but these: {}", names.join(", "))
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
