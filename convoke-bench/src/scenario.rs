//! Scenarios. A scenario is one op, done by several contestants; each family of scenarios is a file below.
//!
//! A file contains constants, `scenarios()` with one `.contestant(…)` line per contestant, and then one
//! function per contestant. That function sets up what it needs (a runtime, a token), untimed, and returns a
//! closure that performs a number of ops and returns their cost. Convoke's contestant is named [`CONVOKE`].

mod await_hop;
mod await_inline;
mod bulk;
mod channels;
mod cores;
mod fairness;
mod frame;
mod generator;
mod hop;
mod http_hello;
mod idle_connection;
mod idle_task;
mod inline_graph;
mod locks;
mod map_concurrent;
mod ping_pong;
mod pool_schedule;
mod pool_spawn;
mod sim_echo;
mod spawn_join;
mod stop_callback;
mod stop_tree;
mod strand_post;
mod tcp_echo;
mod timers;
mod tls;
mod tokio_door;
mod udp_echo;
mod when_all;
mod yielding;

use std::time::Duration;

use crate::allocator;

/// The name of Convoke's contestant.
pub(crate) const CONVOKE: &str = "convoke";

/// Returns all scenarios, in the order of the report.
pub(crate) fn all() -> Vec<Scenario> {
    [
        inline_graph::scenarios(),
        stop_callback::scenarios(),
        pool_schedule::scenarios(),
        pool_spawn::scenarios(),
        hop::scenarios(),
        when_all::scenarios(),
        strand_post::scenarios(),
        bulk::scenarios(),
        spawn_join::scenarios(),
        await_inline::scenarios(),
        await_hop::scenarios(),
        yielding::scenarios(),
        ping_pong::scenarios(),
        frame::scenarios(),
        generator::scenarios(),
        map_concurrent::scenarios(),
        stop_tree::scenarios(),
        idle_task::scenarios(),
        locks::scenarios(),
        channels::scenarios(),
        tcp_echo::scenarios(),
        udp_echo::scenarios(),
        idle_connection::scenarios(),
        http_hello::scenarios(),
        tls::scenarios(),
        tokio_door::scenarios(),
        timers::scenarios(),
        fairness::scenarios(),
        cores::scenarios(),
        sim_echo::scenarios(),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// A contestant that is ready to run.
pub(crate) trait Run {
    /// Performs `ops` ops and returns their cost, in the unit of the scenario.
    fn run(&mut self, ops: u64) -> f64;

    /// Called before each timed sample of `_ops` ops: restarts and warms up contestants whose speed varies
    /// from start to start.
    fn renew(&mut self, _ops: u64) {}

    /// Returns the number of allocations of `ops` ops.
    fn allocations(&mut self, ops: u64) -> f64 {
        let allocations = allocator::count(|| {
            self.run(ops);
        });
        allocations as f64
    }

    /// Returns the processor time of the server so far, where another process does the work.
    fn server_time(&self) -> Option<ServerTime> {
        None
    }
}

/// The processor time of a server.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct ServerTime {
    /// Processor time per op, in nanoseconds.
    pub(crate) per_op: f64,
    /// The kernel's share of it, from 0 to 1, if known; a runtime can only save the rest.
    pub(crate) in_kernel: Option<f64>,
}

/// A contestant that is only a closure.
struct InThisProcess<F>(F);

impl<F: FnMut(u64) -> C, C: Cost> Run for InThisProcess<F> {
    fn run(&mut self, ops: u64) -> f64 {
        (self.0)(ops).number()
    }
}

/// The unit of the cost of ops.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Unit {
    Nanoseconds,
    Bytes,
    /// Nanoseconds of lateness, which say nothing about the time of an op.
    Late,
}

impl Unit {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Nanoseconds => "ns",
            Self::Bytes => "bytes",
            Self::Late => "ns late",
        }
    }
}

/// The cost of ops, as a contestant returns it.
pub(crate) trait Cost {
    /// Returns it as a number of its unit.
    fn number(self) -> f64;
}

impl Cost for Duration {
    fn number(self) -> f64 {
        self.as_nanos() as f64
    }
}

/// A cost in memory.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bytes(pub(crate) u64);

impl Cost for Bytes {
    fn number(self) -> f64 {
        self.0 as f64
    }
}

/// A cost in lateness.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Late(pub(crate) Duration);

impl Cost for Late {
    fn number(self) -> f64 {
        self.0.number()
    }
}

pub(crate) struct Scenario {
    pub(crate) name: &'static str,
    /// A one-line description of one op.
    pub(crate) about: &'static str,
    pub(crate) unit: Unit,
    /// The number of ops is a multiple of this.
    pub(crate) batch: u64,
    /// The number of threads that each do all the ops. Time is per op of one thread; allocations and
    /// instructions, which are counted for the whole process, are divided by it.
    pub(crate) lanes: u64,
    /// The peers that all others are compared with, in server scenarios; otherwise empty.
    pub(crate) yardsticks: &'static [&'static str],
    pub(crate) contestants: Vec<Contestant>,
}

pub(crate) struct Contestant {
    pub(crate) peer: &'static str,
    /// Sets up the contestant; what the closure holds lives until the scenario is over.
    pub(crate) set_up: Box<dyn Fn() -> Box<dyn Run>>,
    pub(crate) instructions: Instructions,
}

/// The way in which the instructions of an op are counted.
pub(crate) enum Instructions {
    /// By running this program under callgrind, with one contestant alone.
    OfThisProcess,
    /// By its own method.
    OfServer(Box<dyn Fn() -> Option<f64>>),
    /// Not counted.
    Unknown,
}

impl Scenario {
    pub(crate) fn new(name: &'static str, about: &'static str) -> Self {
        let (unit, yardsticks) = (Unit::Nanoseconds, [].as_slice());
        Self { name, about, unit, batch: 1, lanes: 1, yardsticks, contestants: Vec::new() }
    }

    pub(crate) fn batch(self, batch: u64) -> Self {
        Self { batch, ..self }
    }

    pub(crate) fn lanes(self, lanes: u64) -> Self {
        Self { lanes, ..self }
    }

    pub(crate) fn unit(self, unit: Unit) -> Self {
        Self { unit, ..self }
    }

    /// Declares that servers in separate processes do the work, and that each is compared with `yardsticks`.
    pub(crate) fn served(self, yardsticks: &'static [&'static str]) -> Self {
        Self { yardsticks, ..self }
    }

    pub(crate) fn contestant<R, C>(mut self, peer: &'static str, set_up: impl Fn() -> R + 'static) -> Self
    where
        R: FnMut(u64) -> C + 'static,
        C: Cost,
    {
        let set_up = move || Box::new(InThisProcess(set_up())) as Box<dyn Run>;
        let instructions = Instructions::OfThisProcess;
        self.contestants.push(Contestant { peer, set_up: Box::new(set_up), instructions });
        self
    }

    /// Adds a contestant whose work is done by other processes. Its scenario must call
    /// [`served`](Self::served).
    pub(crate) fn server<R: Run + 'static>(
        mut self,
        peer: &'static str,
        set_up: impl Fn() -> R + 'static,
        instructions: Instructions,
    ) -> Self {
        let set_up = move || Box::new(set_up()) as Box<dyn Run>;
        self.contestants.push(Contestant { peer, set_up: Box::new(set_up), instructions });
        self
    }

    /// Adds a contestant that cannot run on every machine. Otherwise as [`contestant`](Self::contestant).
    pub(crate) fn contestant_if<R, C>(
        self,
        present: bool,
        peer: &'static str,
        set_up: impl Fn() -> R + 'static,
    ) -> Self
    where
        R: FnMut(u64) -> C + 'static,
        C: Cost,
    {
        if present { self.contestant(peer, set_up) } else { self }
    }

    /// Returns `ops`, rounded up to whole batches.
    pub(crate) fn whole_batches(&self, ops: u64) -> u64 {
        ops.next_multiple_of(self.batch)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn every_scenario_and_every_contestant_in_it_has_its_own_name() {
        let mut names = HashSet::new();
        for scenario in all() {
            assert!(names.insert(scenario.name), "{} twice", scenario.name);
            let mut peers = HashSet::new();
            for contestant in &scenario.contestants {
                assert!(peers.insert(contestant.peer), "{} twice in {}", contestant.peer, scenario.name);
            }
        }
    }

    #[test]
    fn every_contestant_can_do_a_batch_and_then_another() {
        // Servers are separate runs of this program, which a test cannot start; tests/echo.rs runs them.
        for scenario in all().iter().filter(|scenario| scenario.yardsticks.is_empty()) {
            for contestant in &scenario.contestants {
                let mut contestant = (contestant.set_up)();
                contestant.run(scenario.batch);
                contestant.run(2 * scenario.batch);
            }
        }
    }

    #[test]
    fn ops_are_rounded_up_to_whole_batches() {
        let scenario = Scenario::new("test", "").batch(64);
        assert_eq!([1, 64, 65].map(|ops| scenario.whole_batches(ops)), [64, 64, 128]);
    }
}
