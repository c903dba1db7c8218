//! The server of the README as a process of its own, driven by real clients: it lacks descriptors, is stopped under load, is
//! signalled twice, has clients that do not read, and ten thousand of them. Each server is this test binary, started once more.
#![cfg(all(feature = "net", unix))]
#![allow(unsafe_code)]

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream as Client};
use std::process::{Child, ChildStderr, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use convoke::net::{TcpStream, serve};
use convoke::prelude::*;
use convoke::runtime::Main;

#[allow(dead_code, unreachable_pub, reason = "the program around the handler that is tested")]
#[path = "../../examples/server.rs"]
mod example;

/// The variable that selects the server of this process.
const ROLE: &str = "CONVOKE_TEST_SERVER";

/// The number of descriptors of the server that lacks them: some are used by its runtime.
const FEW_DESCRIPTORS: u64 = 64;

#[test]
fn the_server() {
    let Ok(role) = std::env::var(ROLE) else { return };
    let announce = |address: SocketAddr| println!("\nlistening at {address}");
    let main = Main::new().contexts(2).pool_threads(1);
    let ended = match role.as_str() {
        "echo" => main.run(async || serve("127.0.0.1:0", example::echo).on_listening(announce).await),
        "few descriptors" => {
            set_descriptors(FEW_DESCRIPTORS);
            main.run(async || serve("127.0.0.1:0", example::echo).on_listening(announce).await)
        }
        "counts" => {
            let ended = main.exit_code(async || serve("127.0.0.1:0", count).on_listening(announce).await);
            println!("\nwritten: {}", WRITTEN.load(Ordering::SeqCst));
            // The harness of the tests would make another exit status of it.
            std::process::exit(if ended == 143.into() { 143 } else { 1 })
        }
        "never reads" => main.run(async || {
            let grace = Duration::from_millis(300);
            serve("127.0.0.1:0", writes_much).grace(grace).on_listening(announce).await
        }),
        "echo with a short grace" => main.run(async || {
            let grace = Duration::from_millis(300);
            serve("127.0.0.1:0", example::echo).grace(grace).on_listening(announce).await
        }),
        other => panic!("there is no server `{other}`"),
    };
    ended.unwrap();
}

/// The answers that were written by all connections.
static WRITTEN: AtomicUsize = AtomicUsize::new(0);

/// The length of a request and of an answer of `count`.
const ANSWER: usize = 64;

/// Answers requests of a fixed length, and counts the answers.
async fn count(client: TcpStream, _: SocketAddr) -> io::Result<()> {
    let mut request = [0; ANSWER];
    loop {
        client.read_exact(&mut request).await?;
        shield(async {
            client.write_all(&request).await?;
            WRITTEN.fetch_add(1, Ordering::SeqCst);
            io::Result::Ok(())
        })
        .await?;
    }
}

/// Writes more than fits into any buffer, in a shield without a limit of its own.
async fn writes_much(client: TcpStream, _: SocketAddr) -> io::Result<()> {
    println!("\nwriting");
    shield(client.write_all(&vec![7; 64 << 20])).await
}

/// Sets the limit of descriptors of this process, and returns the number that it has then.
fn set_descriptors(wanted: u64) -> u64 {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: `limit` is a valid `rlimit` that the calls read and write.
    unsafe {
        assert_eq!(libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit), 0);
        limit.rlim_cur = wanted.min(limit.rlim_max);
        assert_eq!(libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit), 0);
    }
    limit.rlim_cur
}

struct Server {
    process: Child,
    stdout: io::Lines<BufReader<ChildStdout>>,
    stderr: io::Lines<BufReader<ChildStderr>>,
    address: SocketAddr,
}

impl Server {
    fn start(role: &str) -> Self {
        let mut process = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "server_program::the_server", "--nocapture"])
            .env(ROLE, role)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stdout = BufReader::new(process.stdout.take().unwrap()).lines();
        let stderr = BufReader::new(process.stderr.take().unwrap()).lines();
        let address = line_with(&mut stdout, "listening at ").parse().unwrap();
        Self { process, stdout, stderr, address }
    }

    fn connect(&self) -> Client {
        Client::connect(self.address).unwrap()
    }

    fn signal(&self, signal: i32) {
        // SAFETY: the process is our child and has not been waited for, so its id is still its own.
        assert_eq!(unsafe { libc::kill(self.process.id().try_into().unwrap(), signal) }, 0);
    }

    /// Returns its exit status and the rest of its error output.
    fn end(mut self) -> (Option<i32>, String) {
        let said = self.stderr.map(|line| line.unwrap() + "\n").collect();
        (self.process.wait().unwrap().code(), said)
    }
}

/// Skips lines until one contains `text`, and returns what follows it.
fn line_with<R: BufRead>(lines: &mut io::Lines<R>, text: &str) -> String {
    let found =
        lines.by_ref().find_map(|line| line.unwrap().split_once(text).map(|(_, rest)| rest.to_owned()));
    found.unwrap_or_else(|| panic!("the server ended without `{text}`"))
}

fn echoes(client: &mut Client) {
    let mut heard = [0; 5];
    client.write_all(b"hello").unwrap();
    client.read_exact(&mut heard).unwrap();
    assert_eq!(&heard, b"hello");
}

#[test]
fn a_server_without_descriptors_waits_and_goes_on() {
    let mut server = Server::start("few descriptors");
    let mut first = server.connect();
    echoes(&mut first);
    // The kernel completes more connections than the server has descriptors for.
    let clients: Vec<Client> = (0..2 * FEW_DESCRIPTORS).map(|_| server.connect()).collect();
    line_with(&mut server.stderr, "no connection can be accepted now");
    echoes(&mut first);
    drop(clients);
    echoes(&mut server.connect());
    server.signal(libc::SIGTERM);
    let (status, said) = server.end();
    assert_eq!(status, Some(143), "{said}");
}

#[test]
fn two_signals_at_once_let_it_finish() {
    let server = Server::start("echo");
    let mut client = server.connect();
    echoes(&mut client);
    server.signal(libc::SIGTERM);
    server.signal(libc::SIGTERM);
    // The end of the stream, and no reset.
    assert_eq!(client.read(&mut [0; 1]).unwrap(), 0);
    drop(client);
    let (status, said) = server.end();
    assert_eq!(status, Some(143), "{said}");
    assert!(said.contains("stopped by SIGTERM") && !said.contains("ended hard"), "{said}");
}

#[test]
fn a_client_that_never_reads_is_cut_off_after_the_grace_period() {
    let mut server = Server::start("never reads");
    let client = server.connect();
    line_with(&mut server.stdout, "writing");
    server.signal(libc::SIGTERM);
    let (status, said) = server.end();
    drop(client);
    assert_eq!(status, Some(143), "{said}");
    assert!(said.contains("300ms after the stop request"), "{said}");
}

#[test]
fn a_client_that_sends_and_never_reads_does_not_keep_the_server_from_ending() {
    let server = Server::start("echo with a short grace");
    let mut client = server.connect();
    // The echo fills the buffers of both sides. Then the server waits in its write, and the client in its own.
    client.set_write_timeout(Some(Duration::from_millis(500))).unwrap();
    while client.write(&[7; 1 << 16]).is_ok() {}
    server.signal(libc::SIGTERM);
    let (status, said) = server.end();
    drop(client);
    assert_eq!(status, Some(143), "{said}");
}

#[test]
fn answers_to_clients_that_pipeline_are_delivered_at_a_stop() {
    const CLIENTS: usize = 4;
    // CONVOKE_ROUNDS=300 stops it after more than a million answers.
    let rounds = std::env::var("CONVOKE_ROUNDS").ok().and_then(|rounds| rounds.parse().ok()).unwrap_or(1);
    let answers: usize = 1000 * rounds;
    let mut server = Server::start("counts");
    let (begun, wait) = std::sync::mpsc::channel();
    let clients: Vec<_> = (0..CLIENTS)
        .map(|_| {
            let (client, begun) = (server.connect(), begun.clone());
            thread::spawn(move || pipeline(client, answers * ANSWER, || begun.send(()).unwrap()))
        })
        .collect();
    for _ in 0..CLIENTS {
        wait.recv().unwrap();
    }
    server.signal(libc::SIGTERM);
    let heard: usize = clients.into_iter().map(|client| client.join().unwrap()).sum();
    let written: usize = line_with(&mut server.stdout, "written: ").parse().unwrap();
    let (status, said) = server.end();
    assert_eq!(status, Some(143), "{said}");
    assert_eq!(heard, written * ANSWER, "of {written} answers: {said}");
    assert!(written >= CLIENTS * answers);
    println!("{written} answers, all delivered");
}

/// Sends requests without waiting for answers until the connection ends. Returns the bytes of all answers. Calls
/// `begun` when there are `enough`.
fn pipeline(client: Client, enough: usize, begun: impl FnOnce()) -> usize {
    let mut writer = client.try_clone().unwrap();
    let sending = thread::spawn(move || while writer.write_all(&[1; 64 * ANSWER]).is_ok() {});
    let (mut client, mut heard, mut buffer) = (client, 0, [0; 4096]);
    let mut begun = Some(begun);
    loop {
        match client.read(&mut buffer) {
            Ok(0) => break,
            Ok(length) => heard += length,
            Err(error) => panic!("the connection was reset after {heard} bytes: {error}"),
        }
        if heard >= enough
            && let Some(begun) = begun.take()
        {
            begun();
        }
    }
    // The server has ended its side; so do we.
    _ = client.shutdown(Shutdown::Both);
    sending.join().unwrap();
    heard
}

#[test]
fn ten_thousand_connections_are_served() {
    const WANTED: u64 = 10_000;
    // Inherited by the server, which has a descriptor for each, too.
    let descriptors = set_descriptors(WANTED + 200);
    let count = (descriptors - 200).min(WANTED);
    println!("{count} connections, with {descriptors} descriptors");
    if count < WANTED {
        println!("left out: {} of {WANTED} connections, for want of descriptors", WANTED - count);
        assert!(std::env::var_os("CI").is_none(), "CI must allow {} descriptors", WANTED + 200);
    }
    let server = Server::start("echo");
    let mut clients: Vec<Client> = (0..count).map(|_| server.connect()).collect();
    clients.iter_mut().for_each(echoes);
    drop(clients);
    server.signal(libc::SIGTERM);
    let (status, said) = server.end();
    assert_eq!(status, Some(143), "{said}");
}
