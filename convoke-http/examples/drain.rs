//! A server that receives SIGTERM under full load from clients that pipeline loses no request: what it has begun it answers, and
//! what it has answered arrives. Both sides count.
//!
//! ```text
//! cargo run --release -p convoke-http --example drain -- 100
//! ```

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use convoke::prelude::*;
use convoke_http::{RequestBody, serve};
use http::{Request, Response, StatusCode};

/// Number of clients, and of requests that each has under way.
const CLIENTS: usize = 16;
const PIPELINED: usize = 8;
/// Time that a drain may take, after which the server would stop what it has begun.
const GRACE: Duration = Duration::from_secs(10);

/// Line that the server prints at its first request.
const UNDER_LOAD: &str = "under load";

static BEGUN: AtomicU64 = AtomicU64::new(0);
static ANSWERED: AtomicU64 = AtomicU64::new(0);

fn main() -> io::Result<()> {
    match std::env::args().nth(1).as_deref() {
        Some("serve") => server(),
        rounds => load(rounds.map_or(3, |rounds| rounds.parse().expect("a number of rounds"))),
    }
}

/// Answers some requests at once, and others after a moment.
async fn hello(_: Request<RequestBody>) -> io::Result<Response<String>> {
    let number = BEGUN.fetch_add(1, Relaxed);
    if number == 0 {
        println!("{UNDER_LOAD}");
    }
    if number.is_multiple_of(7) {
        sleep(Duration::from_millis(3)).await;
    }
    Ok(Response::new("hello".to_owned()))
}

/// The process that is drained. Prints its port, that it is under load, and in the end its counts.
#[convoke::main]
async fn server() -> io::Result<()> {
    let count = async |_| println!("{} {}", BEGUN.load(Relaxed), ANSWERED.load(Relaxed));
    let server = async {
        serve("127.0.0.1:0", hello)
            .grace(GRACE)
            .on_listening(|address| println!("{}", address.port()))
            .on_request(|record| {
                if record.status == Some(StatusCode::OK) && record.response_bytes == 5 {
                    ANSWERED.fetch_add(1, Relaxed);
                }
            })
            .await
    };
    ensure(count, server).await
}

fn load(rounds: u32) -> io::Result<()> {
    let (mut requests, mut longest) = (0, Duration::ZERO);
    for round in 1..=rounds {
        let (begun, answered, received, took) = one_round(round)?;
        assert_eq!(
            (begun, answered),
            (received, received),
            "round {round}: begun and answered, and received"
        );
        assert!(took < GRACE, "round {round}: the drain took {took:?}");
        requests += received;
        longest = longest.max(took);
    }
    println!(
        "{rounds} of {rounds} drains lost nothing: {requests} requests, the longest drain {longest:.0?}"
    );
    Ok(())
}

/// Returns the requests that the server has begun and answered, those whose answers were received, and the time of the drain.
fn one_round(round: u32) -> io::Result<(u64, u64, u64, Duration)> {
    let program = std::env::current_exe()?;
    let mut server = Command::new(program).arg("serve").stdout(Stdio::piped()).spawn()?;
    let mut lines = BufReader::new(server.stdout.take().ok_or(io::ErrorKind::BrokenPipe)?).lines();
    let port = number(&lines.next().ok_or(io::ErrorKind::UnexpectedEof)??)? as u16;
    let clients: Vec<_> = (0..CLIENTS).map(|_| thread::spawn(move || pipeline(port))).collect();
    // Each round stops the server at another time.
    thread::sleep(Duration::from_millis(20 + u64::from(round) * 7 % 50));
    let asked = Instant::now();
    Command::new("kill").args(["-TERM", &server.id().to_string()]).status()?;
    let received = clients.into_iter().map(|client| client.join().expect("a client does not panic")).sum();
    let status = server.wait()?;
    assert_eq!(status.code(), Some(143), "stopped by SIGTERM");
    let mut counts = lines.next().ok_or(io::ErrorKind::UnexpectedEof)??;
    if counts == UNDER_LOAD {
        counts = lines.next().ok_or(io::ErrorKind::UnexpectedEof)??;
    }
    let (begun, answered) = counts.split_once(' ').ok_or(io::ErrorKind::InvalidData)?;
    Ok((number(begun)?, number(answered)?, received, asked.elapsed()))
}

fn number(text: &str) -> io::Result<u64> {
    text.parse().map_err(io::Error::other)
}

/// Sends requests without waiting for their answers, until the server ends the connection. Returns the number of answers.
fn pipeline(port: u16) -> u64 {
    const REQUEST: &[u8] = b"GET / HTTP/1.1\r\nhost: here\r\n\r\n";
    let Ok(mut stream) = TcpStream::connect((Ipv4Addr::LOCALHOST, port)) else { return 0 };
    let (mut answers, mut received, mut sends) =
        (0, Vec::new(), stream.write_all(&REQUEST.repeat(PIPELINED)).is_ok());
    let mut buffer = [0; 16 * 1024];
    // A reset ends it as the end of the stream does. Answers that a reset destroys are missing in the count.
    while let Ok(count @ 1..) = stream.read(&mut buffer) {
        received.extend_from_slice(&buffer[..count]);
        let mut complete = 0;
        while let Some(at) = received.windows(9).position(|bytes| bytes == b"\r\n\r\nhello") {
            received.drain(..at + 9);
            complete += 1;
        }
        answers += complete as u64;
        // For each answer another request.
        sends = sends && stream.write_all(&REQUEST.repeat(complete)).is_ok();
    }
    answers
}
