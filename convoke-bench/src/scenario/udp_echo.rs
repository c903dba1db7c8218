//! Echo over UDP: one socket, and one task that receives and sends back, without connections.

use super::{Scenario, tcp_echo};
use crate::echo::{Shape, Transport};

/// Few enough that all datagrams in transit fit into the server's socket buffer: nothing is lost.
const CLIENTS: usize = 50;

pub(super) fn scenarios() -> Vec<Scenario> {
    let shape = Shape { transport: Transport::Udp, bytes: 64, connections: CLIENTS };
    vec![tcp_echo::scenario(
        shape,
        "udp_echo",
        "64 bytes there and back over UDP, from one of 50 busy clients",
    )]
}
