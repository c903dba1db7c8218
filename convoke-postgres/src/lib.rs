//! PostgreSQL on Convoke, by tokio-postgres: a pool of connections that a stop never poisons.
//!
//! tokio-postgres runs unchanged over Convoke's sockets, and needs no tokio runtime. This crate adds what a stop needs:
//!
//! - [`Pool::transaction`] commits if its body returns `Ok`; it rolls back, and awaits that, if the body fails, is stopped or
//!   panics.
//! - A stop during a statement sends a request to cancel it, and awaits the end of the statement.
//! - A connection returns to the pool when its server has said that no transaction is open. One in doubt is rolled back; one
//!   that does not answer in time is cut.
//! - The connections are children of the pool's scope: [`PoolOptions::run`] returns when all have said goodbye.
//!
//! ```no_run
//! use std::time::Duration;
//! use convoke::prelude::*;
//! use convoke_postgres::{Error, Pool, PoolOptions};
//!
//! async fn transfer(pool: &Pool, sum: i64) -> Result<(), Error> {
//!     pool.transaction(async |tx| {
//!         let change = "UPDATE accounts SET balance = balance + $2 WHERE id = $1";
//!         tx.execute(change, &[&1_i32, &-sum]).await?;
//!         tx.execute(change, &[&2_i32, &sum]).await?;
//!         Ok(())
//!     })
//!     .await
//! }
//!
//! #[convoke::main]
//! async fn main() -> Result<(), Error> {
//!     let config = "host=127.0.0.1 user=app dbname=bank".parse()?;
//!     PoolOptions::new(config)
//!         .run(async |pool| {
//!             // Too late is rolled back, wherever it is: in the `BEGIN`, in an `UPDATE`.
//!             let in_time = timeout(Duration::from_secs(1), transfer(&pool, 10)).await;
//!             println!("{}", if in_time.is_ok() { "done" } else { "rolled back" });
//!             Ok(())
//!         })
//!         .await
//! }
//! ```
//!
//! # What a stop does
//!
//! | the task is stopped while | what happens |
//! | --- | --- |
//! | it waits for a free connection | it leaves the queue |
//! | a connection is being established for it | that goes on, and is free for others |
//! | the server works on a statement | the server is asked to cancel it; its end is awaited, at most the [cancel time](PoolOptions::cancel_time) |
//! | it waits for something else in a transaction | `ROLLBACK`, awaited |
//! | the server commits | the commit is awaited: a transaction commits or does not |
//!
//! A future that is *dropped*, as by a foreign `select!`, cannot wait. Then the connection is marked, and rolled back on its way
//! back; or cut, if it was dropped itself.
//!
//! # Day one
//!
//! - `std::env::var("DATABASE_URL")` parses as the configuration: `postgres://app:secret@db.example.com/shop?sslmode=require`. An `sslmode` that
//!   demands encryption needs the feature `tls` and `PoolOptions::tls`; the feature `tls-system-roots` has the authorities of the operating
//!   system for it.
//! - A statement given as text is prepared for each call, which is a round trip. [`prepare_cached`](Connection::prepare_cached) prepares it once
//!   for each connection.
//! - Settings of each session, such as `search_path`: [`PoolOptions::after_connect`].
//! - `COPY`, streams of rows and all else that tokio-postgres can do: [`Connection::client`].
//!
//! # In the simulator
//!
//! Nothing here knows whether the network is real: a program runs with its pool on hosts of `convoke::sim`, against a server that
//! is a program of the simulation, too. The module `testing` (feature `testing`) has such a server, whose statements are closures
//! of the test.
//!
//! # Map
//!
//! | module | contents |
//! | --- | --- |
//! | `options`, `pool` | the limits; what a program calls |
//! | `shared`, `surroundings` | which connections there are; what their sessions need of the pool |
//! | `connection`, `transaction`, `listener` | what a pool lends |
//! | `session` | statements that can be stopped; what is known of a connection |
//! | `status` | the state of a transaction, as the server reports it |
//! | `connecting`, `socket`, `tls` | the way to the server |
//! | `driver` | the task of a connection |
//! | `testing` | a server for tests |

#![cfg_attr(docsrs, feature(doc_cfg))]

mod connecting;
mod connection;
mod driver;
mod error;
mod listener;
mod options;
mod pool;
mod session;
mod shared;
mod socket;
mod status;
mod surroundings;
#[cfg(feature = "testing")]
#[cfg_attr(docsrs, doc(cfg(feature = "testing")))]
pub mod testing;
mod tls;
mod transaction;

pub use connection::Connection;
pub use error::Error;
pub use listener::{Listener, NOTIFICATIONS};
pub use options::{ACQUIRE_TIME, CANCEL_TIME, CONNECT_TIME, CONNECTIONS, IDLE_TIME, KEEP_ALIVE, PoolOptions};
pub use pool::{Pool, PoolStatus};
pub use session::STATEMENTS;
pub use transaction::{Begin, Isolation, Transaction};

/// The encryption below: what [`PoolOptions::tls`] takes.
#[cfg(feature = "tls")]
#[cfg_attr(docsrs, doc(cfg(feature = "tls")))]
pub use convoke_tls;
/// The client library below.
pub use tokio_postgres;

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

/// Compiled here: that crate is below this one, as its users' crates are above it.
#[cfg(all(doctest, feature = "tls"))]
#[doc = include_str!("../../convoke-tls/README.md")]
struct ReadmeOfTls;
