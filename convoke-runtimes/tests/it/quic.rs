//! QUIC between simulated hosts, and what the kernel does for it.

use std::io;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use convoke::prelude::*;
use convoke::sim::{Sim, explore_host_stops, explore_seeds};
use convoke::task::forever;
use convoke::time::now;
use convoke_runtimes::CLOSE_TIME;
use convoke_runtimes::quic::{Quic, quinn};
use quinn::{ClientConfig, ConnectionError, Endpoint, EndpointConfig, ServerConfig};
use rustls::pki_types::PrivateKeyDer;

type AnyError = Box<dyn std::error::Error + Send + Sync>;

/// Time after which a host of these simulations gives up.
const PATIENCE: Duration = Duration::from_secs(20);

fn configurations() -> (ServerConfig, ClientConfig) {
    // Its signatures all have the same length: that of an ECDSA key would differ from run to run.
    let pair = rcgen::KeyPair::generate_for(&rcgen::PKCS_ED25519).unwrap();
    let parameters = rcgen::CertificateParams::new(["server".to_owned()]).unwrap();
    let certificate = parameters.self_signed(&pair).unwrap();
    let key = PrivateKeyDer::try_from(pair.serialize_der()).unwrap();
    let mut roots = rustls::RootCertStore::empty();
    roots.add(certificate.der().clone()).unwrap();
    let server = ServerConfig::with_single_cert(vec![certificate.into()], key).unwrap();
    (server, ClientConfig::with_root_certificates(Arc::new(roots)).unwrap())
}

/// An endpoint whose choices are the same in each run.
fn without_chance() -> EndpointConfig {
    let mut config = EndpointConfig::default();
    config.rng_seed(Some([7; 32]));
    config
}

/// Answers the first stream of the first connection, and returns why the connection has ended.
async fn echo_once(endpoint: &Endpoint) -> Result<ConnectionError, AnyError> {
    let connection = endpoint.accept().await.ok_or("the endpoint is closed")?.await?;
    let (mut send, mut receive) = connection.accept_bi().await?;
    send.write_all(&receive.read_to_end(1 << 16).await?).await?;
    send.finish()?;
    Ok(connection.closed().await)
}

async fn connect(quic: &Quic, config: ClientConfig) -> Result<(Endpoint, quinn::Connection), AnyError> {
    let endpoint = quic.bind(without_chance(), None, "0.0.0.0:0").await?;
    let address = convoke::net::resolve("server:443").await?[0];
    let connection = endpoint.connect_with(config, address, "server")?.await?;
    Ok((endpoint, connection))
}

async fn ask(connection: &quinn::Connection, question: &[u8]) -> Result<Vec<u8>, AnyError> {
    let (mut send, mut receive) = connection.open_bi().await?;
    send.write_all(question).await?;
    send.finish()?;
    Ok(receive.read_to_end(1 << 16).await?)
}

/// Results of the hosts of one simulation.
type Log = Arc<Mutex<Vec<String>>>;

fn note(log: &Log, line: impl ToString) {
    log.lock().unwrap().push(line.to_string());
}

/// Adds a server that answers one connection, and notes how it has ended.
fn server_of(sim: &mut Sim, config: &ServerConfig, log: &Log) {
    let (config, log) = (config.clone(), log.clone());
    sim.host("server").run(move || {
        let (config, log) = (config.clone(), log.clone());
        async move {
            let served = Quic::run(async move |quic| {
                let endpoint = quic.bind(without_chance(), Some(config), "0.0.0.0:443").await?;
                let ended = timeout(PATIENCE, echo_once(&endpoint)).await;
                // The server may notice late, or never, that a client gave up.
                Ok::<_, io::Error>(ended.map_or_else(|elapsed| elapsed.to_string(), |it| format!("{it:?}")))
            });
            note(&log, format!("server: {}", served.await?));
            Ok::<_, io::Error>(())
        }
    });
}

/// Adds a client that asks once.
fn client_of(sim: &mut Sim, config: &ClientConfig, log: &Log) {
    let (config, log) = (config.clone(), log.clone());
    sim.host("client").run(move || {
        let (config, log) = (config.clone(), log.clone());
        async move {
            let answer = Quic::run(async move |quic| {
                let (_endpoint, connection) = connect(&quic, config).await?;
                ask(&connection, &[7; 5000]).await
            });
            match timeout(PATIENCE, answer).await {
                Ok(Ok(answer)) => note(&log, format!("client: {} bytes", answer.len())),
                Ok(Err(error)) => note(&log, format!("client: {error}")),
                Err(elapsed) => note(&log, elapsed),
            }
            Ok::<_, io::Error>(())
        }
    });
}

#[test]
fn hosts_talk_by_quic_and_the_peer_hears_of_the_end() {
    let (server, client) = configurations();
    let log = Log::default();
    explore_seeds(0..5, |sim| {
        log.lock().unwrap().clear();
        server_of(sim, &server, &log);
        client_of(sim, &client, &log);
        let log = log.clone();
        sim.finally(move || {
            let mut lines = log.lock().unwrap().clone();
            lines.sort();
            let ended = [
                "client: 5000 bytes",
                "server: Ok(ApplicationClosed(ApplicationClose { error_code: 0, reason: b\"\" }))",
            ];
            if lines == ended { Ok(()) } else { Err(format!("{lines:?}")) }
        });
    });
}

#[test]
fn a_stop_at_any_step_ends_all_tasks_of_quinn_and_the_peer_hears_of_it() {
    let (server, client) = configurations();
    for host in ["client", "server"] {
        let logs = Mutex::new(Vec::new());
        let explored = explore_host_stops(1, host, |sim| {
            let log = Log::default();
            server_of(sim, &server, &log);
            client_of(sim, &client, &log);
            logs.lock().unwrap().push(log);
        });
        assert!(explored.runs().len() > 20, "{}", explored.runs().len());
        // The first run has no stop. From the first packet on, the server always hears of the end.
        let logs = logs.into_inner().unwrap();
        let heard = logs[1..].iter().map(|log| log.lock().unwrap().iter().any(|it| it.contains("Closed(")));
        let after_the_first = heard.skip_while(|heard| !heard).collect::<Vec<_>>();
        let (stops, all) = (after_the_first.len(), after_the_first.into_iter().all(|heard| heard));
        assert!(host == "server" || stops > 20 && all, "{stops} stops of a connection, all heard: {all}");
    }
}

#[test]
fn the_clean_up_of_a_body_that_was_stopped_can_still_ask() {
    let (server, client) = configurations();
    let log = Log::default();
    explore_seeds(0..1, |sim| {
        server_of(sim, &server, &log);
        let (client, log) = (client.clone(), log.clone());
        sim.host("client").run(move || {
            let (client, log) = (client.clone(), log.clone());
            async move {
                let asks = Quic::run(async move |quic| {
                    let (_endpoint, connection) = connect(&quic, client).await?;
                    let says_good_bye = async |_: Exit| {
                        let answer = ask(&connection, b"good-bye").await;
                        note(&log, format!("client: {:?}", answer.map(|it| it.len())));
                    };
                    ensure(says_good_bye, async { forever().await }).await;
                    Ok::<_, AnyError>(())
                });
                assert!(timeout(Duration::from_secs(1), asks).await.is_err());
                Ok::<_, io::Error>(())
            }
        });
    });
    assert_eq!(log.lock().unwrap().first().unwrap(), "client: Ok(8)");
}

#[test]
fn a_handle_that_is_kept_outside_is_cut_after_the_close_time() {
    let (server, client) = configurations();
    explore_seeds(0..1, |sim| {
        server_of(sim, &server, &Log::default());
        let client = client.clone();
        sim.host("client").run(move || {
            let client = client.clone();
            async move {
                let begun = now();
                let kept = Quic::run(async move |quic| {
                    let (_, connection) = connect(&quic, client).await.map_err(io::Error::other)?;
                    Ok::<_, io::Error>((quic, connection))
                });
                let (quic, connection) = kept.await?;
                let took = now() - begun;
                assert!(took >= CLOSE_TIME && took < 2 * CLOSE_TIME, "{took:?}");
                assert!(ask(&connection, b"too late").await.is_err());
                // Nor can another one be made: its tasks would have no scope.
                let endpoint = quic.client("0.0.0.0:0").await?;
                assert!(endpoint.accept().await.is_none());
                Ok::<_, io::Error>(())
            }
        });
    });
}

#[cfg(target_os = "linux")]
#[convoke::test]
async fn the_kernel_takes_several_datagrams_in_one_call() -> io::Result<()> {
    Quic::run(async |quic| {
        let socket = std::net::UdpSocket::bind("127.0.0.1:0")?;
        let socket = quic.runtime().wrap_udp_socket(socket)?;
        assert!(socket.max_transmit_segments() > 1, "GSO");
        assert!(socket.max_receive_segments() > 1, "GRO");
        assert!(!socket.may_fragment());
        Ok(())
    })
    .await
}

#[convoke::test]
async fn datagrams_of_the_kernel_arrive_in_bulk() -> Result<(), AnyError> {
    let (server, client) = configurations();
    Quic::run(async |quic| {
        let endpoint = quic.server(server, "127.0.0.1:0").await?;
        let address = endpoint.local_addr()?;
        let asks = async {
            let from = quic.client("127.0.0.1:0").await?;
            let connection = from.connect_with(client, address, "server")?.await?;
            let question: Vec<u8> = (0..1 << 16).map(|n| n as u8).collect();
            assert_eq!(ask(&connection, &question).await?, question);
            Ok::<_, AnyError>(())
        };
        let (ended, ()) = try_join((echo_once(&endpoint), asks)).await?;
        assert!(matches!(ended, ConnectionError::ApplicationClosed(_)), "{ended}");
        Ok(())
    })
    .await
}
