//! Connecting to a name with several addresses, in virtual time: head starts, failures, limits, losers.

use std::io::{self, ErrorKind};
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use convoke::driver::{current_driver, with_services};
use convoke::net::resolver::{HostTable, install};
use convoke::net::{CONNECT_HEAD_START, CONNECT_LIMIT, ConnectError, ConnectOptions, TcpListener, TcpStream};
use convoke::prelude::*;
use convoke::sim::{Link, Sim};
use convoke::time::now;

const SECOND: Duration = Duration::from_secs(1);
/// The time until an attempt is answered: a packet takes a millisecond.
const ROUND_TRIP: Duration = Duration::from_millis(2);

/// Runs a client in a network with these hosts:
///
/// | host | addresses | |
/// | --- | --- | --- |
/// | `alive` | 10.0.0.1, fd00::1 | listens at port 7 |
/// | `quiet` | 10.0.0.2, fd00::2 | does not listen |
/// | `hole` | 10.0.0.3, fd00::3 | does not answer |
/// | `far` | 10.0.0.4, fd00::4 | listens at port 7; a packet takes 200 ms |
fn run<C>(client: impl FnOnce() -> C + Clone + Send + 'static)
where
    C: Future<Output = io::Result<()>> + Send + 'static,
{
    let mut sim = Sim::new(1);
    sim.links(Link::calm());
    sim.host("alive").daemon().run(listens);
    sim.host("quiet");
    sim.host("hole");
    sim.host("far").daemon().run(listens);
    sim.host("client").run(move || client.clone()());
    sim.link("client", "far", Link::calm().latency(SECOND / 5..SECOND / 5));
    sim.isolate("hole");
    sim.run();
}

async fn listens() -> io::Result<()> {
    let listener = TcpListener::bind("[::]:7").await?;
    let mut streams = Vec::new();
    loop {
        streams.push(listener.accept().await?);
    }
}

/// Connects to a name with these addresses. Returns the result and the time that it took, and checks that no
/// attempt is left.
async fn connect(
    addresses: &[&str],
    options: ConnectOptions,
) -> io::Result<(io::Result<SocketAddr>, Duration)> {
    let table = addresses
        .iter()
        .fold(HostTable::new(), |table, address| table.with("service", address.parse::<IpAddr>().unwrap()));
    with_services(|services| install(services, table))?.map_err(io::Error::other)?;
    sleep(SECOND).await;
    let start = now();
    let connected = TcpStream::connect_with("service:7", options).await;
    let took = now() - start;
    assert_eq!(current_driver()?.in_flight(), 0, "the other attempts have ended");
    Ok((connected.and_then(|stream| stream.peer_addr()), took))
}

/// Tests that connecting to these addresses succeeds with one of them after some time.
fn connects(addresses: &'static [&'static str], to: &'static str, after: Duration) {
    run(async move || {
        let (connected, took) = connect(addresses, ConnectOptions::new()).await?;
        assert_eq!((connected?.ip(), took), (to.parse().unwrap(), after));
        Ok(())
    });
}

#[test]
fn the_first_address_is_used_if_it_answers() {
    connects(&["fd00::1", "10.0.0.1", "10.0.0.2"], "fd00::1", ROUND_TRIP);
}

#[test]
fn an_address_that_does_not_answer_costs_its_head_start() {
    connects(&["fd00::3", "10.0.0.1"], "10.0.0.1", CONNECT_HEAD_START + ROUND_TRIP);
}

#[test]
fn an_address_that_refuses_costs_no_head_start() {
    connects(&["fd00::2", "10.0.0.1"], "10.0.0.1", 2 * ROUND_TRIP);
}

#[test]
fn the_families_alternate() {
    let after = CONNECT_HEAD_START + ROUND_TRIP;
    connects(&["fd00::3", "fd00::1", "fd00::4", "10.0.0.1"], "10.0.0.1", after);
}

#[test]
fn each_head_start_counts_from_the_attempt_before() {
    let after = 3 * CONNECT_HEAD_START + ROUND_TRIP;
    connects(&["10.0.0.3", "fd00::3", "10.0.0.3", "10.0.0.1"], "10.0.0.1", after);
}

#[test]
fn a_slow_address_wins_if_no_other_is_faster() {
    connects(&["fd00::4", "10.0.0.3"], "fd00::4", 2 * SECOND / 5);
    connects(&["10.0.0.3", "fd00::4", "10.0.0.2"], "fd00::4", CONNECT_HEAD_START + 2 * SECOND / 5);
}

#[test]
fn all_errors_are_reported_together() {
    run(async || {
        let options = ConnectOptions::new().limit(3 * SECOND);
        let (connected, took) = connect(&["fd00::3", "10.0.0.2"], options).await?;
        let error = connected.unwrap_err();
        assert_eq!((error.kind(), took), (ErrorKind::TimedOut, 3 * SECOND));
        assert_eq!(
            error.to_string(),
            "cannot connect to any of 2 addresses: 10.0.0.2:7: connection refused; [fd00::3]:7: no answer within 3s"
        );
        let all = error.get_ref().unwrap().downcast_ref::<ConnectError>().unwrap().errors();
        let kinds: Vec<_> = all.iter().map(|error| error.cause().kind()).collect();
        assert_eq!(kinds, [ErrorKind::ConnectionRefused, ErrorKind::TimedOut]);
        Ok(())
    });
}

#[test]
fn each_address_has_a_limit() {
    run(async || {
        let (connected, took) = connect(&["10.0.0.3"], ConnectOptions::new()).await?;
        let error = connected.unwrap_err();
        assert_eq!((error.kind(), took), (ErrorKind::TimedOut, CONNECT_LIMIT));
        assert_eq!(error.to_string(), "cannot connect to 10.0.0.3:7: no answer within 30s");
        Ok(())
    });
}

#[test]
fn without_a_head_start_one_address_is_tried_after_the_other() {
    run(async || {
        let options = ConnectOptions::new().head_start(Duration::MAX).limit(SECOND);
        let (connected, took) = connect(&["fd00::3", "10.0.0.3", "fd00::1"], options).await?;
        assert_eq!((connected?.ip().to_string().as_str(), took), ("fd00::1", 2 * SECOND + ROUND_TRIP));
        Ok(())
    });
}

#[test]
fn a_stop_ends_all_attempts() {
    run(async || {
        let options = ConnectOptions::new();
        let connecting = connect(&["fd00::3", "10.0.0.3", "fd00::3"], options);
        assert!(timeout(2 * SECOND, connecting).await.is_err());
        assert_eq!(current_driver()?.in_flight(), 0);
        Ok(())
    });
}

#[test]
fn a_bound_stream_connects_from_its_address_and_to_its_family() {
    let peers = Arc::new(Mutex::new(Vec::new()));
    let seen = peers.clone();
    let mut sim = Sim::new(1);
    sim.host("server").daemon().run(move || {
        let seen = seen.clone();
        async move {
            let listener = TcpListener::bind("[::]:7").await?;
            while let Ok((stream, peer)) = listener.accept().await {
                seen.lock().unwrap().push(peer.to_string());
                drop(stream);
            }
            io::Result::Ok(())
        }
    });
    sim.host("client").run(|| async {
        sleep(SECOND).await;
        let both: [SocketAddr; 2] = ["10.0.0.1:7".parse().unwrap(), "[fd00::1]:7".parse().unwrap()];
        for local in ["[::]:1234", "10.0.0.2:4321"] {
            let options = ConnectOptions::new().bind(local.parse::<SocketAddr>().unwrap());
            let stream = TcpStream::connect_with(&both[..], options).await?;
            assert_eq!(stream.read(&mut [0]).await?, 0);
        }
        let options = ConnectOptions::new().bind(([192, 168, 0, 1], 0));
        let foreign = TcpStream::connect_with("10.0.0.1:7", options).await.unwrap_err();
        assert_eq!(foreign.kind(), ErrorKind::AddrNotAvailable);
        let options = ConnectOptions::new().bind("[::]:0".parse::<SocketAddr>().unwrap());
        let other_family = TcpStream::connect_with("10.0.0.1:7", options).await.unwrap_err();
        assert_eq!(other_family.kind(), ErrorKind::AddrNotAvailable);
        io::Result::Ok(())
    });
    sim.run();
    assert_eq!(*peers.lock().unwrap(), ["[fd00::2]:1234", "10.0.0.2:4321"]);
}
