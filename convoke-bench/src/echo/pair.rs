//! A server and its load, each in its own process, as one contestant.

use std::process::{Command, Stdio};

use super::process::{Process, this_program};
use super::{LOAD, Load, SERVE, Serve, Shape, Transport, linux};
use crate::instructions;
use crate::scenario::{Run, ServerTime};

/// The number of requests under callgrind: enough to make differences between runs smaller than one
/// instruction per request.
const WATCHED_REQUESTS: u64 = 20_000;

/// A server and its load, restarted for each sample: some pairs are faster than others of the same kind by up
/// to a third, for as long as they live, depending on where their memory and sockets lie. While other
/// contestants run, they sleep.
pub(crate) struct Pair {
    peer: &'static str,
    shape: Shape,
    server: Server,
    load: Process,
    /// The processor time of the server in all rounds so far, its split into user and kernel, and the number
    /// of requests.
    processor_time: u64,
    ticks: linux::Ticks,
    requests: u64,
}

impl Pair {
    pub(crate) fn start(peer: &'static str, shape: Shape) -> Self {
        let server = Server::start(peer, shape);
        let load = start_load(&server, shape);
        Self { peer, shape, server, load, processor_time: 0, ticks: linux::Ticks::default(), requests: 0 }
    }
}

impl Run for Pair {
    fn run(&mut self, ops: u64) -> f64 {
        let (before, ticks_before) = (self.server.processor_time(), self.server.ticks());
        let round = ask_for(&mut self.load, ops);
        self.processor_time += self.server.processor_time() - before;
        let ticks = self.server.ticks();
        self.ticks.user += ticks.user - ticks_before.user;
        self.ticks.kernel += ticks.kernel - ticks_before.kernel;
        self.requests += round.requests;
        round.elapsed as f64
    }

    fn renew(&mut self, ops: u64) {
        self.server = Server::start(self.peer, self.shape);
        self.load = start_load(&self.server, self.shape);
        ask_for(&mut self.load, ops);
    }

    fn allocations(&mut self, ops: u64) -> f64 {
        let mut server = Server::start_counting(self.peer, self.shape);
        let mut load = start_load(&server, self.shape);
        let mut round = None;
        let allocations = server.count(|_| round = Some(ask_for(&mut load, ops)));
        round.map_or(0.0, |round| allocations as f64 * ops as f64 / round.requests as f64)
    }

    fn server_time(&self) -> Option<ServerTime> {
        let per_op = self.processor_time as f64 / self.requests as f64;
        let all_ticks = self.ticks.user + self.ticks.kernel;
        let in_kernel = (all_ticks > 0).then(|| self.ticks.kernel as f64 / all_ticks as f64);
        Some(ServerTime { per_op, in_kernel })
    }
}

/// Returns the user instructions of a server per request. It runs under callgrind for N and for 2N requests;
/// start-up, connections and warm-up are the same both times. The kernel's part is not included.
pub(crate) fn server_instructions(peer: &str, shape: Shape) -> Option<f64> {
    let total = |requests| {
        let mut callgrind = instructions::callgrind();
        callgrind.arg(this_program().get_program()).stderr(Stdio::piped());
        let server = Server::start_with(&mut callgrind, peer, shape, false);
        ask_for(&mut start_load(&server, shape), requests);
        instructions::collected(&server.process.end()?)
    };
    let (once, twice) = (total(WATCHED_REQUESTS)?, total(2 * WATCHED_REQUESTS)?);
    Some(twice.checked_sub(once)? as f64 / WATCHED_REQUESTS as f64)
}

/// Connections that have each had one request answered and are idle; each op is one of them. Each run has a
/// new server, because reused memory does not show.
pub(crate) struct Idle {
    pub(crate) peer: &'static str,
    pub(crate) bytes: usize,
    pub(crate) transport: Transport,
}

impl Idle {
    fn shape(&self, connections: u64) -> Shape {
        Shape { transport: self.transport, bytes: self.bytes, connections: connections as usize }
    }

    /// Opens one connection, so that one-time set-up is done.
    fn warm_up(&self, server: &Server) {
        drop(start_load(server, self.shape(1)));
    }
}

impl Run for Idle {
    fn run(&mut self, ops: u64) -> f64 {
        let server = Server::start(self.peer, self.shape(ops));
        self.warm_up(&server);
        let before = server.resident_memory();
        let _idle = start_load(&server, self.shape(ops));
        server.resident_memory().saturating_sub(before) as f64
    }

    fn allocations(&mut self, ops: u64) -> f64 {
        let mut server = Server::start_counting(self.peer, self.shape(ops));
        self.warm_up(&server);
        let mut idle = None;
        let allocations = server.count(|server| idle = Some(start_load(server, self.shape(ops))));
        allocations as f64
    }
}

struct Server {
    process: Process,
    port: u16,
}

impl Server {
    fn start(peer: &str, shape: Shape) -> Self {
        Self::start_with(&mut this_program(), peer, shape, false)
    }

    fn start_counting(peer: &str, shape: Shape) -> Self {
        Self::start_with(&mut this_program(), peer, shape, true)
    }

    fn start_with(command: &mut Command, peer: &str, shape: Shape, counting: bool) -> Self {
        let serve =
            Serve { peer: peer.to_owned(), transport: shape.transport, buffer: shape.buffer(), counting };
        let mut process = Process::start(command, SERVE, &serve.arguments());
        let port = process.answer().parse().expect("a server begins with its port");
        Self { process, port }
    }

    /// Returns the number of allocations of a counting server during `body`.
    fn count(&mut self, body: impl FnOnce(&Self)) -> u64 {
        self.process.ask("count");
        body(self);
        number(&self.process.ask("how many"))
    }

    fn processor_time(&self) -> u64 {
        linux::processor_time(self.process.id()).expect("a server has a clock")
    }

    fn ticks(&self) -> linux::Ticks {
        linux::ticks(self.process.id()).expect("a server has a place where it spends its time")
    }

    fn resident_memory(&self) -> u64 {
        linux::resident_memory(self.process.id()).expect("a server has memory")
    }
}

/// Starts the load. When this returns, all connections were accepted, and each had a request answered.
fn start_load(server: &Server, shape: Shape) -> Process {
    let Shape { transport, bytes, connections } = shape;
    let load = Load { transport, port: server.port, connections, bytes };
    let mut process = Process::start(&mut this_program(), LOAD, &load.arguments());
    assert_eq!(process.answer(), "ready");
    process
}

/// The load's report of a round: the time of the requested number of requests, and the number of all
/// requests, including those around them.
struct Round {
    elapsed: u64,
    requests: u64,
}

fn ask_for(load: &mut Process, requests: u64) -> Round {
    let answer = load.ask(&requests.to_string());
    let (elapsed, requests) = answer.split_once(' ').expect("the load answers with two numbers");
    Round { elapsed: number(elapsed), requests: number(requests) }
}

fn number(line: &str) -> u64 {
    line.parse().expect("a process of the bench answers with numbers")
}
