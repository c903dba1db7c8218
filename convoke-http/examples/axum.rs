//! A router of axum, without a runtime of its own: extractors, state, a handler whose clean-up is awaited.
//!
//! ```text
//! cargo run -p convoke-http --features tower --example axum
//! ```

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use axum::Router;
use axum::extract::{Path, State};
use axum::routing::{get, post};
use convoke::net::{TcpListener, TcpStream};
use convoke::prelude::*;
use convoke_http::{Server, tower};

type Visits = Arc<AtomicU64>;

async fn greet(State(visits): State<Visits>, Path(name): Path<String>) -> String {
    // However the handler ends, also if its client hangs up, the visit is counted when it is over.
    let leave = async |_| {
        visits.fetch_add(1, Ordering::Relaxed);
    };
    ensure(leave, async { format!("hello {name}\n") }).await
}

async fn count(State(visits): State<Visits>, body: String) -> String {
    format!("{} visits, {} bytes sent\n", visits.load(Ordering::Relaxed), body.len())
}

/// Sends requests by one connection, and returns all that the server says.
async fn talk(address: std::net::SocketAddr) -> io::Result<String> {
    let stream = TcpStream::connect(address).await?;
    let requests = "GET /hello/ada HTTP/1.1\r\nhost: here\r\n\r\n\
                    GET /hello/bob HTTP/1.1\r\nhost: here\r\n\r\n\
                    POST /count HTTP/1.1\r\nhost: here\r\nconnection: close\r\ncontent-length: 3\r\n\r\nabc";
    stream.write_all(requests.as_bytes()).await?;
    let mut answers = Vec::new();
    while stream.read_buf(&mut answers).await? > 0 {}
    Ok(String::from_utf8_lossy(&answers).into_owned())
}

#[convoke::main]
async fn main() -> io::Result<()> {
    let router = Router::new()
        .route("/hello/{name}", get(greet))
        .route("/count", post(count))
        .with_state(Visits::default());
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    let server = Server::new(listener, tower(router));
    let answers = race((async { server.await.map(|()| String::new()) }, talk(address))).await?;
    println!("{answers}");
    assert!(answers.contains("hello ada") && answers.contains("2 visits, 3 bytes sent"));
    Ok(())
}
