//! Ten thousand clients that begin something and do not go on, and a server in a process of its own: its memory is bounded, and
//! others are served.
#![cfg(target_os = "linux")]
#![allow(unsafe_code)]

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream as Client};
use std::process::{Child, Command, Stdio};

use convoke::runtime::Main;
use convoke_http::{Limits, RequestBody, serve};
use http::{Request, Response};
use http_body_util::BodyExt;

use crate::harness::seconds;
use crate::hostile::peak_memory;

/// The variable that makes a server of this process.
const ROLE: &str = "CONVOKE_TEST_SERVER";

/// The number of clients, and the descriptors that a process needs beside those of its connections.
const CLIENTS: u64 = 10_000;
const OTHERS: u64 = 200;

/// The memory that each of them may take, in KiB. Most of it are the two buffers of hyper.
const KIB_EACH: u64 = 24;

/// The words of clients before they fall silent.
const BEGINNINGS: [&[u8]; 6] = [
    b"",
    b"GET / HT",
    b"GET / HTTP/1.1\r\nhost: s\r\naccept: text/ht",
    b"POST /upload HTTP/1.1\r\nhost: s\r\ncontent-length: 100\r\n\r\nhalf a bo",
    b"PRI * HTTP/2.0\r\n\r\nSM",
    // A connection by HTTP/2, and half of the head of a request.
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0\0\0\x20\x01\x05\0\0\0\x01\x82\x86",
];

#[test]
fn the_server() {
    if std::env::var(ROLE).is_err() {
        return;
    }
    let limits = Limits::new().header_time(seconds(600)).idle_time(seconds(600));
    let ended = Main::new().contexts(1).pool_threads(1).run(async || {
        let server = serve("127.0.0.1:0", answer)
            .limits(limits)
            .grace(seconds(1))
            .report(|_| ())
            .on_listening(|address| println!("\nlistening at {address}"));
        #[cfg(feature = "tls")]
        if let Ok(pem) = std::env::var(encrypted::PEM) {
            return server.tls(encrypted::acceptor(&pem)).await;
        }
        server.await
    });
    ended.unwrap();
}

/// Tells the most memory that the server has had.
async fn answer(request: Request<RequestBody>) -> io::Result<Response<String>> {
    _ = request.into_body().collect().await?;
    Ok(Response::new(peak_memory().unwrap_or_default().to_string()))
}

/// Sets the limit of descriptors of this process, and returns the number that it has then.
fn set_descriptors(wanted: u64) -> u64 {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: `limit` is a valid `rlimit` that the calls read and write.
    unsafe {
        assert_eq!(libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit), 0);
        limit.rlim_cur = limit.rlim_cur.max(wanted).min(limit.rlim_max);
        assert_eq!(libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit), 0);
    }
    limit.rlim_cur
}

/// A server that is killed when the test fails.
struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        _ = self.0.kill();
        _ = self.0.wait();
    }
}

/// Asks a server for the most memory that it has had, on a connection of its own.
fn memory_of(mut client: impl Read + Write) -> u64 {
    client.write_all(b"GET / HTTP/1.1\r\nhost: s\r\nconnection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    client.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
    answer.rsplit("\r\n").next().unwrap().parse().unwrap()
}

/// Lets clients begin something beside others that are served. `ask` asks for the memory of the server, which gets this
/// variable.
fn half_open(
    clients: u64,
    beginnings: &[&[u8]],
    variable: Option<(&str, &str)>,
    ask: impl Fn(SocketAddr) -> u64,
) {
    // Inherited by the server, which has a descriptor for each, too.
    let descriptors = set_descriptors(clients + OTHERS);
    let count = descriptors.saturating_sub(OTHERS).min(clients);
    if count < clients {
        println!("left out: {} of {clients} connections, for want of descriptors", clients - count);
        assert!(std::env::var_os("CI").is_none(), "CI must allow {} descriptors", clients + OTHERS);
    }
    let mut server = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "half_open::the_server", "--nocapture"])
        .env(ROLE, "half open")
        .envs(variable)
        .stdout(Stdio::piped())
        .spawn()
        .map(Server)
        .unwrap();
    let lines = BufReader::new(server.0.stdout.take().unwrap()).lines().map(Result::unwrap);
    let address =
        lines.filter_map(|line| Some(line.strip_prefix("listening at ")?.to_owned())).next().unwrap();
    let address: SocketAddr = address.parse().unwrap();
    let before = ask(address);
    let mut clients = Vec::new();
    for number in 0..count as usize {
        let mut client = Client::connect(address).unwrap();
        client.write_all(beginnings[number % beginnings.len()]).unwrap();
        clients.push(client);
        if number.is_multiple_of(500) {
            ask(address);
        }
    }
    let after = ask(address);
    println!(
        "{count} half-open connections, with {descriptors} descriptors: {before} KiB, and then {after} KiB"
    );
    assert!(after - before < count * KIB_EACH, "{before} KiB, and then {after} KiB");
    // None of them was disconnected.
    clients.iter().for_each(|client| client.set_nonblocking(true).unwrap());
    let is_open = |client: &mut Client| loop {
        match client.read(&mut [0; 4096]) {
            Ok(0) => return false,
            // What it was answered.
            Ok(_) => {}
            Err(error) => return error.kind() == io::ErrorKind::WouldBlock,
        }
    };
    assert!(clients.iter_mut().all(is_open));
    // SAFETY: the process is our child and has not been waited for, so its id is still its own.
    assert_eq!(unsafe { libc::kill(server.0.id().try_into().unwrap(), libc::SIGTERM) }, 0);
    assert_eq!(server.0.wait().unwrap().code(), Some(143), "stopped by SIGTERM");
}

#[test]
fn ten_thousand_half_open_connections_take_little_memory_and_others_are_served() {
    half_open(CLIENTS, &BEGINNINGS, None, |server| memory_of(Client::connect(server).unwrap()));
}

#[cfg(feature = "tls")]
mod encrypted {
    use std::sync::Arc;

    use convoke_http::ALPN;
    use convoke_tls::rustls::crypto::ring;
    use convoke_tls::rustls::pki_types::CertificateDer;
    use convoke_tls::rustls::pki_types::pem::PemObject;
    use convoke_tls::rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
    use convoke_tls::{Identity, TlsAcceptor};
    use rcgen::{CertifiedKey, generate_simple_self_signed};

    use super::*;

    /// The variable with the certificate and the key of a server with TLS, in PEM.
    pub(super) const PEM: &str = "CONVOKE_TEST_PEM";

    /// The number of clients: many times that of the handshakes in a turn.
    const CLIENTS: u64 = 3_000;

    pub(super) fn acceptor(pem: &str) -> TlsAcceptor {
        let identity = Identity::from_pem(pem.as_bytes(), pem.as_bytes()).unwrap();
        TlsAcceptor::builder(identity).alpn(ALPN).handshake_time(seconds(600)).build().unwrap()
    }

    #[test]
    fn half_open_handshakes_take_little_memory_and_others_are_served() {
        let CertifiedKey { cert, signing_key } = generate_simple_self_signed(["server".to_owned()]).unwrap();
        let pem = format!("{}{}", cert.pem(), signing_key.serialize_pem());
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_slice(pem.as_bytes()).unwrap()).unwrap();
        let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        let config = Arc::new(config);
        let client = || ClientConnection::new(config.clone(), "server".try_into().unwrap()).unwrap();
        let mut hello = Vec::new();
        client().write_tls(&mut hello).unwrap();
        // Nothing, a byte, half of a hello, and all of one, which the server has answered.
        let beginnings = [&[], &hello[..1], &hello[..hello.len() / 2], &hello[..]];
        half_open(CLIENTS, &beginnings, Some((PEM, &pem)), |server| {
            memory_of(StreamOwned::new(client(), Client::connect(server).unwrap()))
        });
    }
}
