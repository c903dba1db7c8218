//! More than one machine: what Convoke does for a program of which many processes run, and what it leaves to an engine.
//!
//! Convoke has no cluster of its own. State that outlives a process lies in an engine that was made for it: a database, a broker. What a
//! process owes the others is small, and can be tested: it ends without losing work, says whether it is ready, holds what it holds for a
//! limited time, and does nothing twice that must happen once.
//!
//! # Which engine for what
//!
//! | you have | use | delivery | on Convoke |
//! | --- | --- | --- | --- |
//! | jobs whose effects are in PostgreSQL | a table, `FOR UPDATE SKIP LOCKED`, one transaction per job | exactly once: job and effect commit together | `convoke-postgres` |
//! | jobs whose effects are elsewhere | NATS JetStream, or the same table | at least once, made once by a key | `async-nats` through `tokio_guest` |
//! | events for many readers | JetStream, Kafka | at least once, in order per key | their clients through `tokio_guest` |
//! | "something has changed" | `LISTEN`/`NOTIFY`, Redis pub/sub | at most once: read the state after each connect | `Pool::listen` |
//! | a cache, a rate limit, a short lock | Redis | what expires, expires | `redis` over a stream of ours, or through `tokio_guest` |
//! | one leader | an advisory lock of PostgreSQL, a key in NATS | a lease: see below | `using` |
//!
//! A broker beside a database adds a second system that can be down, and the question what happens between the two commits. Begin with
//! the table.
//!
//! # Drain
//!
//! A deployment stops processes all day, so a stop is no accident. `#[convoke::main]` asks the program to stop at SIGTERM:
//!
//! 1. Nothing new begins: listeners close, and loops that fetch jobs stop at their next `await`.
//! 2. What has begun is finished: `shield(job).grace(limit)` lets a job end, for a limited time.
//! 3. What is not finished then is stopped, and its clean-up is awaited: transactions roll back, and the job is free for another
//!    worker at once, and not when a connection times out.
//! 4. The process exits with 143. After the grace period of `main`, or at a second signal, it names what hangs, and ends.
//!
//! ```
//! use std::time::Duration;
//! use convoke::prelude::*;
//!
//! async fn job() {
//!     sleep(Duration::from_millis(2)).await;
//! }
//!
//! async fn worker() {
//!     loop {
//!         // A job that has begun is finished; the next one does not begin.
//!         shield(job()).grace(Duration::from_secs(2)).await;
//!         checkpoint().await;
//!     }
//! }
//!
//! let ended = block_on(async { timeout(Duration::from_millis(5), worker()).await });
//! assert!(ended.unwrap().is_err(), "time was up");
//! ```
//!
//! Give the orchestrator more time than the program takes: its grace period (`terminationGracePeriodSeconds`, `TimeoutStopSec`) is
//! longer than that of `main`, and that is longer than those inside.
//!
//! # Readiness
//!
//! *Ready* is not *alive*. A process is ready when it can do work: its pool has reached the database. It is not ready from the moment
//! when it is asked to stop, and must still answer for a while: the load balancer notices only at its next probe, and until then it sends
//! clients. A server of `convoke-http` closes its listener at once, unless it is told to announce its drain: with
//! `Server::announce(Duration::from_secs(10))` it goes on for that time, and `Connection::drain` tells its readiness probe to answer 503. The
//! time belongs to those that the orchestrator has to wait for. Keep the check of the database out of the liveness probe: if the
//! database is down, restarting every process does not help it.
//!
//! # Leases
//!
//! A process may be killed, or cut off, while it holds something. So what it holds must end by itself: a row lock ends with its
//! connection, a message that was not acknowledged is delivered again, a key expires. A lease is a resource that ends with its scope:
//!
//! ```
//! use std::time::Duration;
//! use convoke::prelude::*;
//!
//! struct Lease(&'static str);
//!
//! impl AsyncClose for Lease {
//!     type Error = Never;
//!     async fn close(self, _: Exit) -> Result<(), Never> {
//!         // So that the next holder need not wait for its end.
//!         println!("{} is released", self.0);
//!         Ok(())
//!     }
//! }
//!
//! async fn renew(_lease: &Lease) -> Result<(), &'static str> {
//!     sleep(Duration::from_millis(1)).await;
//!     Err("lost")
//! }
//!
//! async fn lead() {
//!     sleep(Duration::from_secs(3600)).await;
//! }
//!
//! // The work ends when the lease is lost: the race stops it, and awaits its clean-up.
//! let ended = block_on(async {
//!     using(Lease("leadership"), async |lease| {
//!         let renews = async {
//!             loop {
//!                 renew(&lease).await?;
//!             }
//!         };
//!         race((renews, async { Ok(lead().await) })).await
//!     })
//!     .await
//! });
//! assert_eq!(ended, Outcome::Value(Err("lost")));
//! ```
//!
//! A holder that was stopped for a while does not know that its lease has ended. If two holders must never act at once, the engine has to
//! refuse the older one: a number that grows with each lease, checked where the effect happens.
//!
//! # Idempotence
//!
//! Between an effect and the note that it happened, a process can die. There are two ways out:
//!
//! - **Both in one transaction.** The effect of the job and the mark that it is done commit together. If the connection is lost in the
//!   commit (`Error::CommitUnknown`), look again: the job is done, or it is not.
//! - **A key.** The effect carries the identity of the job, and the other side refuses it a second time: `ON CONFLICT DO NOTHING`, an
//!   `Idempotency-Key` header. Then delivering twice is harmless.
//!
//! A retry is safe with either, and with neither otherwise. [`retry`](crate::retry::retry) does not know which of them you have.
//!
//! # A connection that is never poisoned
//!
//! A pool of connections is shared by all requests of a process. If a future that is dropped leaves its connection in the middle of a
//! transaction, the next request works inside that transaction, and its effects are lost or committed with those of a stranger. In
//! `convoke-postgres` a stop cancels the statement on the server, rolls back, and awaits both; a connection is lent again when its server
//! has said that no transaction is open. The example `connection_pool` shows the bug and its absence in a hundred lines.
//!
//! # In the simulator
//!
//! The fleet of workers that runs on PostgreSQL runs on simulated hosts, too: one crashes and comes back, one is stopped, the network
//! is cut, the database restarts; every job has its effect, once, with every seed. The first run of it hung: a database that had crashed
//! and come back never answered a statement, and nothing told the client. A connection needs keep-alive, and a test that crashes it.
//!
//! ```text
//! cargo run --release -p convoke-postgres --features testing --example fleet
//! 300 jobs, 300 effects: 91 by one, which crashed; 25 by two, which was stopped; 184 by three; …
//! ```
//!
//! `cargo xtask test --only services` runs the same workers as processes, on PostgreSQL and on NATS JetStream, with SIGKILL for one and
//! SIGTERM for another.
