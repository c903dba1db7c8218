//! hickory's resolver between simulated hosts.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use convoke::net::{TcpListener, UdpSocket, resolve};
use convoke::prelude::*;
use convoke::sim::{Sim, explore_host_stops, explore_seeds};
use convoke_runtimes::dns::hickory_resolver::config::{ConnectionConfig, NameServerConfig, ResolverConfig};
use convoke_runtimes::dns::{Dns, Resolver};

/// Length of the head of a message, and of what follows a question's name.
const HEAD: usize = 12;
const TYPE_AND_CLASS: usize = 4;
/// Flag of a message that was cut short: the client asks again, by TCP.
const TRUNCATED: u8 = 2;

/// Returns the answer 10.1.2.3 to a message with one question.
fn answer(question: &[u8], flags: u8) -> Vec<u8> {
    let name_ends = HEAD + question[HEAD..].iter().position(|byte| *byte == 0).unwrap() + 1;
    let mut answer = question[..name_ends + TYPE_AND_CLASS].to_vec();
    answer[2] |= 0x80 | flags;
    answer[3] = 0x80;
    answer[4..HEAD].copy_from_slice(&[0, 1, 0, 1, 0, 0, 0, 0]);
    answer.extend([0xc0, HEAD as u8, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4, 10, 1, 2, 3]);
    answer
}

/// Answers by UDP.
async fn by_udp(flags: u8) -> io::Result<()> {
    let socket = UdpSocket::bind("0.0.0.0:53").await?;
    let mut buffer = [0; 512];
    loop {
        let (length, from) = socket.recv_from(&mut buffer).await?;
        socket.send_to(&answer(&buffer[..length], flags), from).await?;
    }
}

/// Answers by TCP, where a message has its length before it.
async fn by_tcp() -> io::Result<()> {
    let listener = TcpListener::bind("0.0.0.0:53").await?;
    loop {
        let (client, _) = listener.accept().await?;
        let mut length = [0; 2];
        while client.read_exact(&mut length).await.is_ok() {
            let mut question = vec![0; usize::from(u16::from_be_bytes(length))];
            client.read_exact(&mut question).await?;
            let answer = answer(&question, 0);
            client.write_all(&u16::try_from(answer.len()).unwrap().to_be_bytes()).await?;
            client.write_all(&answer).await?;
        }
    }
}

/// Results of resolvers: addresses, or why there are none.
type Found = Arc<Mutex<Vec<Result<Vec<Ipv4Addr>, String>>>>;

/// Adds a client that asks a name server, by UDP and if that is not enough by TCP.
fn client_of(sim: &mut Sim, found: &Found) {
    let found = found.clone();
    sim.host("client").run(move || {
        let found = found.clone();
        async move {
            let server = resolve("server:53").await?[0];
            let looked_up = Dns::run(async move |dns| look_up(dns, server).await).await;
            found.lock().unwrap().push(looked_up);
            Ok::<_, io::Error>(())
        }
    });
}

async fn look_up(dns: Dns, server: SocketAddr) -> Result<Vec<Ipv4Addr>, String> {
    let connections = vec![ConnectionConfig::udp(), ConnectionConfig::tcp()];
    let server = NameServerConfig::new(server.ip(), true, connections);
    let config = ResolverConfig::from_parts(None, Vec::new(), vec![server]);
    let resolver: Resolver =
        Resolver::builder_with_config(config, dns).build().map_err(|error| error.to_string())?;
    let found = resolver.lookup_ip("database.example.").await.map_err(|error| error.to_string())?;
    Ok(found
        .iter()
        .filter_map(|address| match address {
            std::net::IpAddr::V4(address) => Some(address),
            std::net::IpAddr::V6(_) => None,
        })
        .collect())
}

/// Adds a server that ends with the last client.
fn server_of(sim: &mut Sim, flags: u8) {
    sim.host("server").run(move || async move {
        let serves = try_join((by_udp(flags), by_tcp()));
        match timeout(Duration::from_secs(60), serves).await {
            Ok(ended) => ended.map(drop),
            Err(_) => Ok(()),
        }
    });
}

#[test]
fn names_are_found_by_udp() {
    let found = Found::default();
    explore_seeds(0..5, |sim| {
        server_of(sim, 0);
        client_of(sim, &found);
    });
    assert_eq!(*found.lock().unwrap(), vec![Ok(vec![Ipv4Addr::new(10, 1, 2, 3)]); 5]);
}

#[test]
fn an_answer_that_was_cut_short_is_asked_for_again_by_tcp() {
    let found = Found::default();
    explore_seeds(0..5, |sim| {
        server_of(sim, TRUNCATED);
        client_of(sim, &found);
    });
    assert_eq!(*found.lock().unwrap(), vec![Ok(vec![Ipv4Addr::new(10, 1, 2, 3)]); 5]);
}

#[test]
fn a_server_that_does_not_answer_is_given_up_in_virtual_time() {
    let found = Found::default();
    explore_seeds(0..1, |sim| {
        sim.host("server").run(|| async {
            // Datagrams arrive, and nobody reads them; streams are refused.
            let _silent = UdpSocket::bind("0.0.0.0:53").await?;
            sleep(Duration::from_secs(120)).await;
            Ok::<_, io::Error>(())
        });
        client_of(sim, &found);
    });
    let found = found.lock().unwrap();
    assert!(found[0].as_ref().is_err_and(|error| error.contains("timed out")), "{found:?}");
}

#[test]
fn a_stop_at_any_step_ends_all_tasks_of_hickory() {
    for flags in [0, TRUNCATED] {
        let explored = explore_host_stops(1, "client", |sim| {
            server_of(sim, flags);
            client_of(sim, &Found::default());
        });
        assert!(explored.runs().len() > 10, "{}", explored.runs().len());
    }
}
