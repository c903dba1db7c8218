//! The memory of a connection whose task waits for the next request.
//!
//! What is counted is the anonymous resident memory of the server's process: by how much the kernel says it has grown
//! when 10 000 connections have each had one request of 64 bytes answered and are idle. So it includes what the
//! allocator rounds up and what a runtime keeps in tables of its own; the kernel's sockets are not in it. Everybody's
//! task has a buffer of 128 bytes from the allocator. The server is fresh, but has served one connection before.

use super::{Instructions, Scenario, Unit, tcp_echo::YARDSTICKS};
use crate::echo::{self, Idle};

const CONNECTIONS: u64 = 10_000;
const BYTES: usize = 64;

pub(super) fn scenarios() -> Vec<Scenario> {
    let about = "the server's memory of an idle TCP connection and its task, one of 10 000";
    let scenario =
        Scenario::new("idle_connection_bytes", about).batch(CONNECTIONS).unit(Unit::Bytes).served(YARDSTICKS);
    let server = |scenario: Scenario, peer| {
        scenario.server(peer, move || Idle { peer, bytes: BYTES }, Instructions::Unknown)
    };
    vec![echo::peers().fold(scenario, server)]
}
