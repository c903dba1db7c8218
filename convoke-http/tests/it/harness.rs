//! A simulated host with a server and a client that speaks HTTP/1 byte by byte, or HTTP/2 by hyper.

use std::fmt::Display;
use std::future::{Future, IntoFuture};
use std::io;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use convoke::net::{TcpListener, TcpStream};
use convoke::prelude::*;
use convoke::scope::Handle;
use convoke::sim::simulate;
use convoke_http::rt::{ConvokeTimer, HyperIo, ScopeExecutor};
use convoke_http::{HttpService, RequestBody, Server};
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::client::conn::http2;

/// The number of seeds that each simulated test runs with.
const SEEDS: u64 = 10;

/// Runs a program on a simulated host, with several seeds.
#[track_caller]
pub(crate) fn simulated<F, P>(program: F)
where
    F: Fn() -> P,
    P: Future<Output = io::Result<()>> + Send + 'static,
{
    for seed in 0..SEEDS {
        simulate(seed, program()).unwrap();
    }
}

/// Lines that tasks write.
#[derive(Clone, Default)]
pub(crate) struct Log(Arc<Mutex<Vec<String>>>);

impl Log {
    pub(crate) fn add(&self, line: impl Display) {
        self.0.lock().unwrap().push(line.to_string());
    }

    pub(crate) fn lines(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }
}

/// Opens a listener on the simulated host.
pub(crate) async fn listener() -> io::Result<TcpListener> {
    TcpListener::bind("127.0.0.1:80").await
}

/// Runs a client beside a server. When the client has ended the server is asked to stop, and awaited.
pub(crate) async fn beside<S, C>(server: Server<TcpListener, S>, client: C) -> io::Result<()>
where
    S: HttpService,
    C: Future<Output = io::Result<()>>,
{
    race((server.into_future(), client)).await
}

/// Asks a server to stop, and waits until it has ended.
pub(crate) async fn stop(server: Handle<io::Result<()>>) {
    server.request_stop(StopReason::Shutdown);
    assert!(catch_stopped(server).await.is_err(), "a server ends stopped");
}

/// Answers with the path of the request.
pub(crate) async fn path(request: Request<RequestBody>) -> io::Result<Response<String>> {
    Ok(Response::new(request.uri().path().to_owned()))
}

/// Answers with the body of the request.
pub(crate) async fn echo(request: Request<RequestBody>) -> io::Result<Response<Full<Bytes>>> {
    Ok(Response::new(Full::new(request.into_body().collect().await?.to_bytes())))
}

/// A connection of a client that speaks HTTP/1.
pub(crate) struct Client {
    pub(crate) stream: TcpStream,
    received: Vec<u8>,
}

/// A response by HTTP/1.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: String,
}

impl Client {
    pub(crate) async fn connect() -> io::Result<Self> {
        Ok(Self::new(TcpStream::connect("127.0.0.1:80").await?))
    }

    pub(crate) fn new(stream: TcpStream) -> Self {
        Self { stream, received: Vec::new() }
    }

    pub(crate) async fn send(&self, text: &str) -> io::Result<()> {
        self.stream.write_all(text.as_bytes()).await
    }

    /// Asks for a page, and reads the answer.
    pub(crate) async fn get(&mut self, path: &str) -> io::Result<Answer> {
        self.send(&format!("GET {path} HTTP/1.1\r\nhost: server\r\n\r\n")).await?;
        self.answer().await
    }

    /// Reads an answer with a length.
    pub(crate) async fn answer(&mut self) -> io::Result<Answer> {
        let end = loop {
            if let Some(at) = self.received.windows(4).position(|bytes| bytes == b"\r\n\r\n") {
                break at + 4;
            }
            self.more().await?;
        };
        let head = String::from_utf8(self.received.drain(..end).collect()).unwrap().to_lowercase();
        let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
        let length = length.map_or(0, |length| length.parse().unwrap());
        while self.received.len() < length {
            self.more().await?;
        }
        let body = String::from_utf8(self.received.drain(..length).collect()).unwrap();
        let status = head["http/1.1 ".len()..][..3].parse().unwrap();
        Ok(Answer { status, head, body })
    }

    async fn more(&mut self) -> io::Result<()> {
        match self.stream.read_buf(&mut self.received).await? {
            0 => Err(io::ErrorKind::UnexpectedEof.into()),
            _ => Ok(()),
        }
    }

    /// Reads to the end of the connection, and returns what was left of it. A reset is an end, too.
    pub(crate) async fn rest(&mut self) -> String {
        String::from_utf8(self.rest_of_bytes().await).unwrap()
    }

    /// Reads to the end of the connection, and returns what was left of it.
    pub(crate) async fn rest_of_bytes(&mut self) -> Vec<u8> {
        while self.more().await.is_ok() {}
        std::mem::take(&mut self.received)
    }
}

/// A connection of a client that speaks HTTP/2. Its task is a child of the scope.
pub(crate) type Http2 = http2::SendRequest<Full<Bytes>>;

/// Opens a connection by HTTP/2.
pub(crate) async fn http2<S>(scope: &convoke::Scope<io::Result<()>>, stream: S) -> io::Result<Http2>
where
    S: futures_io::AsyncRead + futures_io::AsyncWrite + Unpin + Send + 'static,
{
    let executor = ScopeExecutor::new(scope.clone());
    let mut builder = http2::Builder::new(executor);
    builder.timer(ConvokeTimer).initial_stream_window_size(64 * 1024);
    let (requests, connection) = builder.handshake(HyperIo::new(stream)).await.map_err(io::Error::other)?;
    scope.spawn(async move {
        // The test sees what becomes of its requests.
        _ = connection.await;
    });
    Ok(requests)
}

/// Sends a request by HTTP/2, and reads its answer.
pub(crate) async fn ask(client: &Http2, path: &str) -> io::Result<(StatusCode, String)> {
    let request = Request::get(format!("http://server{path}")).body(Full::default()).unwrap();
    send(client, request).await
}

/// Sends a request by HTTP/2, and reads its answer.
pub(crate) async fn send(client: &Http2, request: Request<Full<Bytes>>) -> io::Result<(StatusCode, String)> {
    let answer = client.clone().send_request(request).await.map_err(io::Error::other)?;
    let status = answer.status();
    let body = answer.into_body().collect().await.map_err(io::Error::other)?.to_bytes();
    Ok((status, String::from_utf8(body.into()).unwrap()))
}

pub(crate) const fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// A resource that writes into the log when it is closed, which takes a second.
pub(crate) struct Transaction(pub(crate) Log);

impl AsyncClose for Transaction {
    type Error = Never;

    async fn close(self, exit: Exit) -> Result<(), Never> {
        sleep(seconds(1)).await;
        self.0.add(format!("closed: the body {exit}"));
        Ok(())
    }
}
