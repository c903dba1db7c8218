//! Servers: one call, what it does, how it ends, and how to write one by hand.
//!
//! [`serve`](crate::net::serve()) accepts connections on all cores and runs a handler for each, as a task of its own.
//!
//! ```no_run
//! use std::io;
//! use std::net::SocketAddr;
//! use std::time::Duration;
//! use convoke::net::{TcpStream, serve};
//! use convoke::prelude::*;
//!
//! async fn answer(client: TcpStream, _from: SocketAddr) -> io::Result<()> {
//!     let mut request = [0; 4096];
//!     loop {
//!         // Idle connections are closed after a minute, and by a stop of the program.
//!         let read = timeout(Duration::from_secs(60), client.read(&mut request));
//!         let length = match read.await? {
//!             Ok(0) => return Ok(()),
//!             read => read?,
//!         };
//!         // A request that was read is answered, also after a stop.
//!         shield(client.write_all(&request[..length])).await?;
//!     }
//! }
//!
//! #[convoke::main(grace_seconds = 20)]
//! async fn main() -> io::Result<()> {
//!     serve("127.0.0.1:7000", answer)
//!         .connections(1000)
//!         .grace(Duration::from_secs(5))
//!         .on_listening(|address| println!("listening at {address}"))
//!         .await
//! }
//! ```
//!
//! # With TLS
//!
//! The handler does the handshake, so that a slow client delays no other. [`TlsAcceptor`](crate::tls::TlsAcceptor) bounds its time, and
//! how many run at once.
//!
//! ```no_run
//! use std::io;
//! use convoke::net::serve;
//! use convoke::prelude::*;
//! use convoke::tls::{Identity, TlsAcceptor};
//!
//! #[convoke::main]
//! async fn main() -> io::Result<()> {
//!     let identity = Identity::from_pem_files("server.crt", "server.key")?;
//!     let acceptor = TlsAcceptor::new(identity)?;
//!     serve("127.0.0.1:7443", move |client, _from| {
//!         let acceptor = acceptor.clone();
//!         async move {
//!             let client = acceptor.accept(client).await?;
//!             using(client, async |mut client| {
//!                 let mut buffer = [0; 4096];
//!                 while let length @ 1.. = client.read(&mut buffer).await? {
//!                     client.write_all(&buffer[..length]).await?;
//!                 }
//!                 io::Result::Ok(())
//!             })
//!             .await // close_notify was sent, whatever has ended the body.
//!         }
//!     })
//!     .await
//! }
//! ```
//!
//! # HTTP
//!
//! The crate `convoke-http` serves `async fn`s, services of hyper and routers of axum, with a task for each request and the same
//! drain: `convoke_http::Server::new("127.0.0.1:7000", tower(router)).await`.
//!
//! # What it takes care of
//!
//! | | |
//! | --- | --- |
//! | cores | one listener for each context of the runtime, or one acceptor that hands connections over: [`Accepting`](crate::net::Accepting) |
//! | bound | at most [`connections`](crate::net::Server::connections) handlers at a time; further clients wait in the backlog |
//! | failures | an error or a panic of a handler is [reported](crate::net::Server::report); the others go on |
//! | lack of descriptors or memory | reported once; the acceptor pauses [`ACCEPT_PAUSE`](crate::net::ACCEPT_PAUSE) and tries again |
//! | names | acceptors and connections have names in the [tree](crate::inspect::tree()) of tasks |
//! | the end | see below |
//!
//! # The end
//!
//! `#[convoke::main]` asks the program to stop at SIGINT or SIGTERM. In this order:
//!
//! 1. The listeners close at once: new clients are refused, or go to another instance.
//! 2. Each connection is asked to stop. One that waits for a request ends. One that is in a `shield` or a clean-up goes on.
//! 3. A connection that has ended is closed so that what was written is delivered: the client reads the end of the stream, and input
//!    that it still sends is read and discarded ([`Linger`](crate::io::Linger)).
//! 4. After the [grace period](crate::net::Server::grace) of the server, sockets that are still open are shut down. A write to a
//!    client that does not read fails then, and its task ends.
//! 5. Services close, and the process prints by what it was stopped and where it waited. It exits with 130 or 143.
//!
//! The process is ended *hard*, with status 70 and a list of the tasks that still run, if all that takes longer than the grace period
//! of `main`, or if a signal comes again. Signals within a second of the first one are the same request
//! ([`SECOND_SIGNAL_AFTER`](crate::runtime::SECOND_SIGNAL_AFTER)): `timeout` and supervisors send several. For other signals, and
//! to react to one, see [`signal`](crate::signal).
//!
//! # By hand
//!
//! A server is a scope whose body accepts connections. [`supervise`](crate::Scope::supervise) starts children whose errors and
//! panics are reported and do not end the scope.
//!
//! ```no_run
//! use std::io;
//! use convoke::net::{TcpListener, TcpStream};
//! use convoke::prelude::*;
//! use convoke::scope::policy::ChildFailure;
//!
//! async fn answer(client: TcpStream) -> io::Result<()> {
//!     client.write_all(b"hello").await
//! }
//!
//! async fn serve(listener: TcpListener) -> io::Result<()> {
//!     scope(async |s| {
//!         let report = |failure: ChildFailure<io::Error>| eprintln!("{failure}");
//!         let clients = s.supervise(report);
//!         loop {
//!             let (client, from) = listener.accept().await?;
//!             clients.named(from.to_string()).spawn(answer(client));
//!         }
//!     })
//!     .await
//! }
//! ```
//!
//! # Clients
//!
//! [`TcpStream::connect`](crate::net::TcpStream::connect) takes names and addresses. Put a [`timeout`](crate::timeout) around what may
//! take too long, and [`retry`](crate::retry::retry) around what may fail.
//!
//! `Client` of the crate `convoke-http` is a client for HTTP. Its connections are children of a scope, so it is run with a body, and
//! when it returns nothing of it is left. It can be cloned, and handlers of a server share it:
//!
//! ```ignore
//! async fn page(State(client): State<Client>) -> Result<String, Failure> {
//!     // If the visitor hangs up here, the request is stopped, and its connection
//!     // is not used again.
//!     Ok(client.get("http://backend/page").send().await?.text().await?)
//! }
//!
//! #[convoke::main]
//! async fn main() -> io::Result<()> {
//!     Client::run(async |client| {
//!         let router = Router::new().route("/", get(page)).with_state(client);
//!         Server::new("127.0.0.1:7000", tower(router)).await
//!     })
//!     .await
//! }
//! ```
