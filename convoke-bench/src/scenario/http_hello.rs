//! HTTP servers that say hello: what a server adds to hyper, which is the same for all.
//!
//! Server and load have a core each. The server's processor time per request is the measure to compare: the
//! load may be the slower of the two.

use super::{Instructions, Scenario, Unit};
use crate::echo::{self, Idle, Pair, STREAMS, Shape, Transport};

const YARDSTICKS: &[&str] = &["tokio", "tokio_limits"];

/// The number of idle connections.
const IDLE: u64 = 10_000;

pub(super) fn scenarios() -> Vec<Scenario> {
    let http1 = Scenario::new("http_hello_64", "a request by HTTP/1.1, on one of 64 busy connections");
    let http2 =
        Scenario::new("http2_hello", "a request by HTTP/2, one of 8 at a time on one of 8 connections");
    let on_cores = Scenario::new(
        "http_hello_2_cores",
        "a request by HTTP/1.1, for which the server computes 0.1 ms, on one of 64 connections",
    );
    let idle = Scenario::new(
        "http_idle_connection_bytes",
        "the server's memory of an idle connection by HTTP/1.1 that is kept alive, one of 10 000",
    );
    let on_cores = on_cores.served(&["tokio", "tokio_1_core", "convoke_1_core"]);
    let shape = Shape { transport: Transport::HttpWork, bytes: 0, connections: 64 };
    let on_cores = echo::http_peers_on_cores().fold(on_cores, |scenario, peer| {
        scenario.server(peer, move || Pair::start(peer, shape), Instructions::Unknown)
    });
    let idle = idle.batch(IDLE).unit(Unit::Bytes).served(YARDSTICKS);
    let idle = echo::http_peers().fold(idle, |scenario, peer| {
        let idle = move || Idle { peer, bytes: 0, transport: Transport::Http1 };
        scenario.server(peer, idle, Instructions::Unknown)
    });
    vec![
        hello(http1, Shape { transport: Transport::Http1, bytes: 0, connections: 64 }),
        hello(http2.batch(STREAMS as u64), Shape { transport: Transport::Http2, bytes: 0, connections: 8 }),
        on_cores,
        idle,
    ]
}

fn hello(scenario: Scenario, shape: Shape) -> Scenario {
    echo::http_peers().fold(scenario.served(YARDSTICKS), |scenario, peer| {
        let count = move || echo::server_instructions(peer, shape);
        let instructions = Instructions::OfServer(Box::new(count));
        scenario.server(peer, move || Pair::start(peer, shape), instructions)
    })
}
