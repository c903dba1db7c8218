//! Echo over UDP: one socket, one task that receives and sends back; no connection to look after.

use super::{Scenario, tcp_echo};
use crate::echo::{Shape, Transport};

/// So few that what is on its way always fits into the server's socket: nothing is lost.
const CLIENTS: usize = 50;

pub(super) fn scenarios() -> Vec<Scenario> {
    let shape = Shape { transport: Transport::Udp, bytes: 64, connections: CLIENTS };
    vec![tcp_echo::scenario(
        shape,
        "udp_echo",
        "64 bytes there and back over UDP, from one of 50 busy clients",
    )]
}
