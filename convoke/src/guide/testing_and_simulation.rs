//! Testing and simulation: virtual time, a stop at every `await`, simulated networks.
//!
//! # Tests
//!
//! `#[convoke::test]` runs an `async fn` as a test, with real sockets. `#[convoke::test(virtual_time)]` runs it with a clock that
//! jumps to the next timer when there is nothing else to do: an hour passes at once, and the test reports tasks that hang or are left
//! behind.
//!
//! ```
//! use std::time::Duration;
//! use convoke::prelude::*;
//! use convoke::testing;
//!
//! testing::run(async {
//!     let begin = convoke::time::now();
//!     sleep(Duration::from_secs(3600)).await;
//!     assert!(convoke::time::now() - begin >= Duration::from_secs(3600));
//! });
//! ```
//!
//! # A stop at every `await`
//!
//! [`explore_stops`](crate::testing::explore_stops) runs a program many times and asks it to stop before each of its steps in turn.
//! It fails if clean-up is skipped, if a task is left behind, or if the program does not end.
//!
//! ```
//! use convoke::prelude::*;
//! use convoke::testing::explore_stops;
//!
//! explore_stops(|| async {
//!     ensure(async |_| checkpoint().await, async {
//!         checkpoint().await;
//!         checkpoint().await;
//!     })
//!     .await;
//! });
//! ```
//!
//! # Simulations
//!
//! The same program runs in a simulated network (feature `sim`): several hosts, virtual time, a scheduler that follows a seed,
//! partitions, crashes, disks that lose what was not synced. A run that fails prints its seed, and `CONVOKE_SEED` runs it again.
//!
//! ```
//! use std::io;
//! use convoke::net::{TcpListener, TcpStream};
//! use convoke::sim::Sim;
//!
//! let mut sim = Sim::new(7);
//! sim.host("server").run(|| async {
//!     let listener = TcpListener::bind("0.0.0.0:80").await?;
//!     let (client, _) = listener.accept().await?;
//!     client.write_all(b"hello").await
//! });
//! sim.host("client").run(|| async {
//!     let stream = TcpStream::connect("server:80").await?;
//!     let mut greeting = [0; 5];
//!     stream.read_exact(&mut greeting).await?;
//!     assert_eq!(&greeting, b"hello");
//!     io::Result::Ok(())
//! });
//! sim.run();
//! ```
//!
//! A program with a database is simulated with it: `convoke_postgres::testing` has a server that speaks PostgreSQL's protocol, whose
//! statements are closures of the test. The example `simulated_service` of `convoke-http` is an application of axum over a pool of
//! `convoke-postgres`, with load by the HTTP client, partitions, crashes and drains; nothing in the application knows of it.
//!
//! # Contracts
//!
//! An executor, a driver, a lock, a channel or a frame allocator of your own runs through the same suites as ours: see
//! [`testing`](crate::testing).
