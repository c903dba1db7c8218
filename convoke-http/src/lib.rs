//! HTTP servers and clients on Convoke, by hyper: a task per request, limits, and a drain that loses nothing.
//!
//! [`serve()`] runs an `async fn` for each request, [`Server::new`] a service of hyper or, with the feature `tower`, a
//! router of axum as `tower(router)`. HTTP/1.1 and HTTP/2, on all cores, with TLS if the feature `tls` is on. Beside this
//! crate, a program depends on `convoke`, `http` and, for bodies, `http-body-util`; on `hyper` for `service_fn`.
//!
//! ```no_run
//! use std::io;
//! use std::time::Duration;
//! use convoke::prelude::*;
//! use convoke_http::{Limits, RequestBody, serve};
//! use http::{Request, Response};
//! use http_body_util::BodyExt;
//!
//! async fn shout(request: Request<RequestBody>) -> io::Result<Response<String>> {
//!     // A body that is too large or too slow is answered with 413 or 408, by the `?`.
//!     let body = request.into_body().collect().await?.to_bytes();
//!     Ok(Response::new(String::from_utf8_lossy(&body).to_uppercase()))
//! }
//!
//! #[convoke::main]
//! async fn main() -> io::Result<()> {
//!     serve("127.0.0.1:7000", shout)
//!         .limits(Limits::new().body_bytes(64 * 1024))
//!         .request_time(Duration::from_secs(10))
//!         .on_request(|record| println!("{record}"))
//!         .on_listening(|address| println!("listening at {address}"))
//!         .await
//! }
//! ```
//!
//! # The tree of tasks
//!
//! ```text
//! server
//! └─ connection                   at most `connections`; its failure is reported
//!    ├─ upgraded connection       hears a stop of the server at once
//!    └─ (shield, for the grace period of a drain)
//!       ├─ protocol               hyper, while there are requests
//!       ├─ request                the handler, and all that it starts
//!       └─ body of a response     what `streamed` started
//! ```
//!
//! Hyper runs in a task of the connection, and polls no handler. What it holds of a request is a handle. When a client hangs
//! up, hyper drops that handle, and the task behind it is asked to stop: its `using` and `ensure` run, and are awaited.
//! If hyper held the handler itself, it would drop a transaction between two steps.
//!
//! - [`OnHangUp::Finish`] lets a handler finish although its client has gone.
//! - A panic of a handler is a 500, and [reported](Server::report). So is an error that it returns. Other requests of the
//!   connection go on.
//! - The [request time](Server::request_time) is a deadline: everything that the handler awaits or starts sees it. A
//!   database call below it can ask how long it still has.
//! - A response body is polled by hyper, and dropped at an arbitrary point if the client goes. Bodies with clean-up are
//!   written by a task of their own: [`streamed()`].
//!
//! # Handlers that need tokio
//!
//! There is no tokio runtime around a handler: a crate that needs one (sqlx, tonic's transport) panics with "there is no reactor running".
//! `tokio_guest` of the crate `convoke-tokio` gives it one; as a middleware of axum, for all routes:
//!
//! ```ignore
//! async fn on_tokio(request: Request, next: Next) -> Response {
//!     tokio_guest(move || next.run(request)).await
//! }
//! let router = router.layer(axum::middleware::from_fn(on_tokio));
//! ```
//!
//! Children of a scope in a handler are tasks of their own: put `tokio_guest` around what needs tokio there, too.
//!
//! # Clients
//!
//! `Client` (feature `client`) sends requests. Its connections are children of a scope: when it ends, nothing of it is left. See the
//! module `client`.
//!
//! # Limits
//!
//! | limit | default | a client that exceeds it |
//! | --- | --- | --- |
//! | [`connections`](Server::connections) | 16,384 | waits in the backlog |
//! | [`requests`](Limits::requests) of all connections | 16,384 | is answered with 503 |
//! | TLS handshake: time, number in a turn | 10 s, 256 | is disconnected; waits for its turn |
//! | [`streams`](Limits::streams) of a connection by HTTP/2 | 100 | waits, as it was told |
//! | [`stream_window_bytes`](Limits::stream_window_bytes), [`connection_window_bytes`](Limits::connection_window_bytes) | 256 KiB, 1 MiB | waits, as it was told |
//! | [`send_bytes`](Limits::send_bytes) of a response by HTTP/2 | 64 KiB | is not asked for: the handler waits |
//! | [`header_bytes`](Limits::header_bytes), [`headers`](Limits::headers) | 32 KiB, 100 | is answered with 431 |
//! | [`header_time`](Limits::header_time) | 10 s | is answered with 408 |
//! | [`body_bytes`](Limits::body_bytes) | 2 MiB | is answered with 413 |
//! | [`body_time`](Limits::body_time) | 60 s | is answered with 408 |
//! | [`idle_time`](Limits::idle_time) without a request | 60 s | is disconnected |
//! | [`write_time`](Limits::write_time) without reading | 30 s | is disconnected |
//! | [`probe_time`](Limits::probe_time) of silence | 30 s | is asked whether it is there, and then disconnected |
//! | [`request_time`](Server::request_time) of a handler | none | is answered with 503 |
//!
//! # The end
//!
//! `#[convoke::main]` asks the program to stop at SIGINT or SIGTERM. In this order:
//!
//! 1. If the drain is [announced](Server::announce), the server goes on as before for that time. A readiness probe, which
//!    asks [`Connection::drain`], answers 503, and the load balancer sends clients elsewhere.
//! 2. Listeners close. Connections without a request close, too; by HTTP/2 the client is told (GOAWAY).
//! 3. [Upgraded](upgrade()) connections are asked to stop. What they still have to send belongs in their clean-up.
//! 4. Requests that have begun are answered. A long poll hears of the drain through [`Connection::drain`].
//! 5. After the [grace period](Server::grace), requests that still run are asked to stop, and their clean-up is awaited.
//!    This is [reported](Report::CutOff).
//!
//! # In the simulator
//!
//! The server runs unchanged on hosts of `convoke::sim`, with virtual time, partitions and crashes. A client that is slow for a minute
//! takes no time, and the same seed is the same run. The `date` header is by the clock of the host, too.
//!
//! ```
//! use std::io;
//! use std::time::Duration;
//! use convoke::net::TcpStream;
//! use convoke::prelude::*;
//! use convoke::sim::Sim;
//! use convoke_http::{RequestBody, serve};
//! use http::{Request, Response};
//!
//! async fn slow(_: Request<RequestBody>) -> io::Result<Response<String>> {
//!     sleep(Duration::from_secs(5)).await;
//!     Ok(Response::new("hello".to_owned()))
//! }
//!
//! async fn client() -> io::Result<()> {
//!     let stream = TcpStream::connect("server:80").await?;
//!     stream.write_all(b"GET / HTTP/1.1\r\nhost: server\r\n\r\n").await?;
//!     let mut answer = Vec::new();
//!     while stream.read_buf(&mut answer).await? > 0 {}
//!     assert!(answer.ends_with(b"hello"), "it was drained, and not cut off");
//!     Ok(())
//! }
//!
//! let mut sim = Sim::new(1);
//! sim.host("server").daemon().run(async || serve("0.0.0.0:80", slow).await);
//! sim.host("client").run(client);
//! sim.at(Duration::from_secs(3), |sim| sim.stop("server"));
//! sim.run();
//! ```

#![cfg_attr(docsrs, feature(doc_cfg))]

mod body;
mod caught;
#[cfg(feature = "client")]
#[cfg_attr(docsrs, doc(cfg(feature = "client")))]
pub mod client;
mod connection;
mod drain;
mod limits;
mod record;
mod report;
pub mod rt;
#[cfg_attr(not(feature = "tls"), path = "no_secured.rs")]
mod secured;
mod server;
mod streamed;
#[cfg(feature = "tower")]
mod tower;
mod upgrade;

pub use body::{BodyError, RequestBody};
#[cfg(feature = "client")]
#[cfg_attr(docsrs, doc(cfg(feature = "client")))]
pub use client::{Client, ClientError};
pub use connection::Connection;
pub use drain::Drain;
pub use limits::{
    BODY_BYTES, BODY_TIME, CONNECTION_WINDOW_BYTES, HEADER_BYTES, HEADER_TIME, HEADERS, IDLE_TIME, Limits,
    PROBE_TIME, REQUESTS, SEND_BYTES, STREAM_WINDOW_BYTES, STREAMS, WRITE_TIME,
};
pub use record::RequestRecord;
pub use report::{Report, RequestLine};
pub use server::{HttpService, OnHangUp, Server, Serving, serve};
pub use streamed::{BodyClosed, BodyWriter, CHUNKS, StreamedBody, streamed};
#[cfg(feature = "tower")]
#[cfg_attr(docsrs, doc(cfg(feature = "tower")))]
pub use tower::{TowerBody, TowerCall, TowerService, tower};
pub use upgrade::{UpgradeError, Upgraded, upgrade};

/// The names by which TLS agrees on a version of HTTP, the preferred one first: for
/// `TlsAcceptor::builder(identity).alpn(ALPN)`.
pub const ALPN: [&str; 2] = ["h2", "http/1.1"];
