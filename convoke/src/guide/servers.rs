//! Servers: accepting, supervising, draining, signals.
//!
//! A server is a scope whose body accepts connections. [`supervise`](crate::Scope::supervise) starts children whose errors and
//! panics are reported and do not end the scope. A [`Bound`](crate::scope::Bound) limits the connections: nothing is accepted that
//! cannot be served.
//!
//! ```no_run
//! use std::io;
//! use std::time::Duration;
//! use convoke::net::{TcpListener, TcpStream};
//! use convoke::prelude::*;
//! use convoke::retry::{Backoff, retry};
//! use convoke::scope::Bound;
//! use convoke::scope::policy::ChildFailure;
//!
//! async fn answer(client: TcpStream) -> io::Result<()> {
//!     let mut request = [0; 4096];
//!     loop {
//!         let length = match timeout(Duration::from_secs(60), client.read(&mut request)).await? {
//!             Ok(0) => return Ok(()),
//!             read => read?,
//!         };
//!         // A request that was read is answered, within three seconds of a stop.
//!         let write = client.write_all(&request[..length]);
//!         shield(write).grace(Duration::from_secs(3)).await?;
//!     }
//! }
//!
//! #[convoke::main(grace_seconds = 10)]
//! async fn main() -> io::Result<()> {
//!     let listener = TcpListener::bind("127.0.0.1:7000").await?;
//!     let connections = Bound::new(1000);
//!     scope(async |s| {
//!         let clients = s.supervise(|failure: ChildFailure<io::Error>| eprintln!("{failure}"));
//!         loop {
//!             let permit = connections.take(1).await;
//!             // Out of descriptors: wait and try again.
//!             let accepted = retry(Backoff::constant(Duration::from_millis(100)), || listener.accept());
//!             let (client, from) = accepted.await?;
//!             clients.named(from.to_string()).spawn(async move {
//!                 let _permit = permit;
//!                 answer(client).await
//!             });
//!         }
//!     })
//!     .await
//! }
//! ```
//!
//! # Signals
//!
//! `#[convoke::main]` asks the program to stop at SIGINT or SIGTERM. The accept loop ends, the connections end at their next read,
//! shielded answers are written, clean-up runs, and the process exits with 130 or 143. A second signal, or the end of the grace
//! period, ends it at once and prints the tasks that still ran. For other signals, and to react to one, see
//! [`signal`](crate::signal).
//!
//! # Clients
//!
//! [`TcpStream::connect`](crate::net::TcpStream::connect) takes names and addresses. Put a [`timeout`](crate::timeout) around what may
//! take too long, and [`retry`](crate::retry::retry) around what may fail.
