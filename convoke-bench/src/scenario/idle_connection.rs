//! The memory of a connection whose task waits for the next request.
//!
//! It is the growth of the anonymous resident memory of the server's process, as the kernel reports it, when
//! 10 000 connections have each had one request of 64 bytes answered and are idle. So it includes what the
//! allocator rounds up and what a runtime stores in its own tables, but not the kernel's sockets. Each task
//! has a buffer of 128 bytes from the allocator. The server is new, but has served one connection before.

use super::{Instructions, Scenario, Unit, tcp_echo::YARDSTICKS};
use crate::echo::{self, Idle, Transport};

const CONNECTIONS: u64 = 10_000;
const BYTES: usize = 64;

pub(super) fn scenarios() -> Vec<Scenario> {
    let about = "the server's memory of an idle TCP connection and its task, one of 10 000";
    let scenario =
        Scenario::new("idle_connection_bytes", about).batch(CONNECTIONS).unit(Unit::Bytes).served(YARDSTICKS);
    let server = |scenario: Scenario, peer| {
        let idle = move || Idle { peer, bytes: BYTES, transport: Transport::Tcp };
        scenario.server(peer, idle, Instructions::Unknown)
    };
    vec![echo::peers().fold(scenario, server)]
}
