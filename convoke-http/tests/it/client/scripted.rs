//! Servers that are written byte by byte, to say what no proper server says.

use std::future::Future;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use convoke::net::{TcpListener, TcpStream};
use convoke::prelude::*;
use convoke::task::forever;
use convoke_http::Client;
use convoke_http::client::ClientBuilder;

/// A connection that a scripted server has accepted.
pub(crate) struct Peer {
    pub(crate) stream: TcpStream,
    received: Vec<u8>,
}

impl Peer {
    /// Reads the head of a request, in lower case.
    pub(crate) async fn head(&mut self) -> io::Result<String> {
        loop {
            if let Some(at) = self.received.windows(4).position(|bytes| bytes == b"\r\n\r\n") {
                let head: Vec<u8> = self.received.drain(..at + 4).collect();
                return Ok(String::from_utf8(head).unwrap().to_lowercase());
            }
            self.more().await?;
        }
    }

    /// Reads this many bytes.
    pub(crate) async fn body(&mut self, length: usize) -> io::Result<String> {
        while self.received.len() < length {
            self.more().await?;
        }
        Ok(String::from_utf8(self.received.drain(..length).collect()).unwrap())
    }

    async fn more(&mut self) -> io::Result<()> {
        match self.stream.read_buf(&mut self.received).await? {
            0 => Err(io::ErrorKind::UnexpectedEof.into()),
            _ => Ok(()),
        }
    }

    pub(crate) async fn say(&self, text: &str) -> io::Result<()> {
        self.stream.write_all(text.as_bytes()).await
    }

    /// Answers with a body.
    pub(crate) async fn answer(&self, body: &str) -> io::Result<()> {
        self.say(&format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{body}", body.len())).await
    }

    /// Waits until the client closes the connection.
    pub(crate) async fn closed(&mut self) {
        while self.more().await.is_ok() {}
    }

    pub(crate) async fn keep_silent(self) -> io::Result<()> {
        forever().await
    }
}

/// A number of connections.
#[derive(Clone, Default)]
pub(crate) struct Count(Arc<AtomicUsize>);

impl Count {
    pub(crate) fn get(&self) -> usize {
        self.0.load(Ordering::SeqCst)
    }

    pub(crate) fn add(&self) -> usize {
        self.0.fetch_add(1, Ordering::SeqCst)
    }
}

/// Runs a body with a client, beside a server at `127.0.0.1:80` that runs `script` for each connection, with its number. A
/// connection whose script fails is closed.
pub(crate) async fn scripted<S, F, B, R>(builder: ClientBuilder, script: S, body: B) -> io::Result<()>
where
    S: Fn(usize, Peer) -> F + Send + Sync + 'static,
    F: Future<Output = io::Result<()>> + Send + 'static,
    B: FnOnce(Client, Count) -> R,
    R: Future<Output = io::Result<()>>,
{
    let listener = TcpListener::bind("127.0.0.1:80").await?;
    let accepted = Count::default();
    let counted = accepted.clone();
    let script = Arc::new(script);
    let server = async {
        scope(async |s| {
            loop {
                let (stream, _) = listener.accept().await?;
                let (script, number) = (script.clone(), counted.add());
                s.spawn(async move { _ = script(number, Peer { stream, received: Vec::new() }).await });
            }
        })
        .await
    };
    race((server, builder.run(async |client| body(client, accepted).await))).await
}
