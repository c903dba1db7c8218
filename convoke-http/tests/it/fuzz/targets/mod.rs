//! Targets of fuzzers, one for each thing of ours that reads what strangers say. Each is a function of bytes that panics if
//! something is wrong. libFuzzer runs the same ones: see `fuzz/`.

mod addresses;
mod client;
mod http1;
mod http2;
mod proxies;
mod tls;
mod tunnel;

use std::io;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use convoke::net::{TcpListener, TcpStream};
use convoke::prelude::*;
use convoke_http::{Report, RequestBody};
use http::{Request, Response};
use http_body_util::BodyExt;

/// A function that a fuzzer feeds.
pub(crate) type Target = fn(&[u8]);

/// All targets, by their names: those of the folders in `fuzz/seeds`.
pub(crate) const ALL: [(&str, Target); 7] = [
    ("addresses", addresses::target),
    ("client", client::target),
    ("http1", http1::target),
    ("http2", http2::target),
    ("proxies", proxies::target),
    ("tls", tls::target),
    ("tunnel", tunnel::target),
];

/// The address of the server in a simulation.
const SERVER: &str = "127.0.0.1:80";

/// The address of another one, on the same host.
const OTHER: &str = "127.0.0.1:81";

/// A time that nothing takes which ends at all.
const LONG: Duration = Duration::from_secs(600);

/// Answers with the length of the body: never with what a client says.
async fn length(request: Request<RequestBody>) -> io::Result<Response<String>> {
    Ok(Response::new(request.into_body().collect().await?.to_bytes().len().to_string()))
}

/// The reports of a server that are not about its clients. None may be made.
#[derive(Clone, Default)]
struct Reports(Arc<Mutex<Vec<String>>>);

impl Reports {
    fn function(&self) -> impl Fn(Report) + Send + Sync + use<> {
        let reports = self.0.clone();
        move |report| {
            if !report.is_about_client() {
                reports.lock().unwrap().push(report.to_string());
            }
        }
    }

    fn check(&self) {
        assert_eq!(*self.0.lock().unwrap(), [""; 0], "reports about the server");
    }
}

/// Sends bytes in pieces of a size, all at once if that is zero. A peer that does not read all of it is no error.
async fn say(stream: &TcpStream, bytes: &[u8], size: u8) {
    let pieces = bytes.chunks(if size == 0 { bytes.len().max(1) } else { size.into() });
    for (number, piece) in pieces.enumerate() {
        if stream.write_all(piece).await.is_err() {
            break;
        }
        // The first ones arrive one by one.
        if number < 100 {
            sleep(Duration::from_millis(1)).await;
        }
    }
}

/// Sends bytes to the server, and returns all that it says before it closes the idle connection.
async fn converse(bytes: &[u8], size: u8) -> io::Result<Vec<u8>> {
    let stream = TcpStream::connect(SERVER).await?;
    let mut answers = Vec::new();
    let hear = async { while let Ok(1..) = stream.read_buf(&mut answers).await {} };
    let ended = timeout(LONG, join((say(&stream, bytes, size), hear))).await;
    assert!(ended.is_ok(), "the server keeps a connection without requests");
    Ok(answers)
}

/// Asks the server for something, as a client that is not to suffer from others.
async fn is_served() -> io::Result<()> {
    let answers = converse(b"GET / HTTP/1.1\r\nhost: s\r\nconnection: close\r\n\r\n", 0).await?;
    assert!(answers.starts_with(b"HTTP/1.1 200 OK\r\n"), "{}", answers.escape_ascii());
    Ok(())
}

async fn listener() -> io::Result<TcpListener> {
    TcpListener::bind(SERVER).await
}

/// Reads the head of a request; `None` if the connection ends before.
async fn head_of(stream: &TcpStream) -> Option<String> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        stream.read_exact(&mut byte).await.ok()?;
        head.push(byte[0]);
    }
    String::from_utf8(head).ok()
}
