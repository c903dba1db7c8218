//! Echo over TCP: what a runtime adds to the kernel's part of a request, which is most of it.
//!
//! All servers have one task per connection that reads up to its buffer's size and writes all of that back,
//! with `TCP_NODELAY`. Server and load have a core each, so the time per op is that of the slower of the two:
//! a server that is cheaper than the load shows in its processor time, not in the number of requests.

use super::{Instructions, Scenario};
use crate::echo::{self, Pair, Shape, Transport};

/// The peers that all others are compared with.
pub(super) const YARDSTICKS: &[&str] = &["tokio", "raw_epoll"];

pub(super) fn scenarios() -> Vec<Scenario> {
    vec![
        tcp(64, 1, "tcp_echo_64_1", "64 bytes there and back over TCP, on one connection"),
        tcp(64, 50, "tcp_echo_64_50", "64 bytes there and back over TCP, on one of 50 busy connections"),
        tcp(
            64,
            1000,
            "tcp_echo_64_1000",
            "64 bytes there and back over TCP, on one of 1000 busy connections",
        ),
        tcp(16384, 50, "tcp_echo_16384_50", "16 KiB there and back over TCP, on one of 50 busy connections"),
    ]
}

fn tcp(bytes: usize, connections: usize, name: &'static str, about: &'static str) -> Scenario {
    scenario(Shape { transport: Transport::Tcp, bytes, connections }, name, about)
}

/// Creates a scenario in which every peer's server gets the same work.
pub(super) fn scenario(shape: Shape, name: &'static str, about: &'static str) -> Scenario {
    let scenario = Scenario::new(name, about).served(YARDSTICKS);
    echo::peers().fold(scenario, |scenario, peer| {
        let count = move || echo::server_instructions(peer, shape);
        let instructions = Instructions::OfServer(Box::new(count));
        scenario.server(peer, move || Pair::start(peer, shape), instructions)
    })
}
