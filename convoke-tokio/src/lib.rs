//! The way from tokio to Convoke and back: Convoke's scopes and awaited clean-up inside a tokio program, one handler
//! at a time; and tokio's crates inside Convoke.
//!
//! # Adopt it one handler at a time
//!
//! A tokio program need not change for this. Put [`run`] around what one handler, or one spawned task, does:
//!
//! ```
//! use std::time::Duration;
//! use convoke::prelude::*;
//! use convoke_tokio::run;
//!
//! struct Transaction;
//!
//! impl AsyncClose for Transaction {
//!     type Error = Never;
//!     async fn close(self, exit: Exit) -> Result<(), Never> {
//!         // tokio's timers and sockets, and Convoke's locks and sleeps: both work here.
//!         tokio::time::sleep(Duration::from_millis(1)).await;
//!         println!("{}: {exit}", if exit.is_clean() { "COMMIT" } else { "ROLLBACK" });
//!         Ok(())
//!     }
//! }
//!
//! /// A handler: a future of tokio's. One of axum turns `Stopped` into a
//! /// response, such as 503.
//! async fn order() -> Result<u32, Stopped> {
//!     run(async {
//!         using(Transaction, async |_transaction| {
//!             scope(async |s| {
//!                 let price = s.spawn_future(async { 20 });
//!                 let tax = s.spawn_future(async { 22 });
//!                 price.await + tax.await
//!             })
//!             .await
//!         })
//!         .await
//!     })
//!     .named("order")
//!     .await
//! }
//!
//! #[tokio::main(flavor = "current_thread")]
//! async fn main() {
//!     assert_eq!(order().await, Ok(42)); // COMMIT
//!
//!     // The client hangs up, and tokio drops the handler: ROLLBACK, all the same.
//!     let _ = tokio::time::timeout(Duration::ZERO, order()).await;
//!     convoke_tokio::finish(Duration::from_secs(10)).await.expect("nothing is left");
//! }
//! ```
//!
//! | in the tokio program | inside `run` |
//! | --- | --- |
//! | tokio drops the handler: the client hung up, `abort`, `select!` | a stop is requested, and the clean-up is awaited by a task of the runtime, the *reaper* |
//! | `JoinSet`, `tokio::spawn` | `scope`: its children end before it does; `tokio::spawn` still works |
//! | `tokio::time`, a clock that is paused | one clock: Convoke's sleeps and timeouts are tokio's timers |
//! | a future of tokio's, of reqwest, of sqlx | works as it is; a stop drops it where it waits |
//! | the end of the program | [`finish`], before the runtime is dropped: it waits for the reapers, and names what is left |
//!
//! - A chain runs inside one tokio task, so its children take turns: that suits handlers, which mostly wait.
//!   [`Workers`] runs children in parallel on tokio's threads: `scope_on(&workers, …)`.
//! - [`run_local`] is for futures that are not `Send`, in a `LocalSet`.
//! - [`join`] awaits, in a tokio task, what was launched on another executor. It takes a `Launched`; a sender is awaited inside `run`, or
//!   in what is launched. What needs no task works anywhere:
//!   channels, locks and events of `convoke::sync` connect tokio's tasks and Convoke's.
//! - Convoke's own sockets, and what is built on them such as the client of `convoke-http`, need an I/O context. Inside `run`, use
//!   tokio's sockets; or let a thread run a context, and name it: `with_local(&IO, context.executor(), …)` (`convoke::driver::IO`).
//! - `convoke::inspect::tree()` shows each chain with its children, and where they wait.
//!
//! # The other door: tokio inside Convoke
//!
//! A program on Convoke uses crates that need tokio through [`tokio_guest`]: the future is made, polled and dropped
//! inside a tokio runtime, which is a service of the context, and closes in order. Each I/O context has a runtime of its own, with one
//! thread: a pool of another crate that was made on one context is driven there, whoever uses it.
//!
//! ```
//! use convoke_tokio::tokio_guest;
//!
//! #[convoke::main]
//! async fn main() {
//!     let answer = tokio_guest(|| async { tokio::spawn(async { 42 }).await }).await;
//!     assert_eq!(answer.unwrap(), 42);
//! }
//! ```
//!
//! [`CompatExt::compat`] gives a stream the traits of the other side.
//!
//! # Map
//!
//! | module | contents |
//! | --- | --- |
//! | `run`, `run_local`, `spare_loops` | the futures by which a tokio task runs a chain; loops that are used again |
//! | `chain`, `pump`, `task_waker` | a chain with its loop; running a loop in polls; how the loop wakes the task |
//! | `chains`, `finish` | the chains of each runtime, and waiting for their end |
//! | `join` | awaiting what was launched elsewhere |
//! | `workers` | an executor over tokio's threads |
//! | `guest` | tokio inside Convoke |
//! | `compat` | bytes both ways |

// The protocol of a chain, whichever of the futures runs it:
//
// 1. The first poll starts a root task on a loop, an `EmbeddedLoop` or a `RunLoop`. Each poll of the tokio task runs a
//    bounded number of pieces of work of the loop. Before it returns, it lets the loop doze: a post from elsewhere
//    then wakes the tokio task. A tokio timer waits for the earliest timer of the loop.
// 2. The chain is registered with its runtime until it has ended.
// 3. A future that is dropped early hands the chain, with its loop, to a task of the runtime. That polls it as before.
// 4. A runtime that ends drops both. Then the loop is closed, which stops what is queued and what is woken later.

#![cfg_attr(docsrs, feature(doc_cfg))]

mod chain;
mod chains;
mod compat;
mod finish;
mod guest;
mod join;
mod pump;
mod run;
mod run_local;
mod spare_loops;
mod task_waker;
mod workers;

pub use compat::{Compat, CompatExt};
pub use finish::{Unfinished, finish};
pub use guest::{Guest, GuestCall, GuestRuntime, TasksLeft, tokio_guest};
pub use join::{Join, join};
pub use pump::PIECES_PER_POLL;
pub use run::{Run, run};
pub use run_local::{RunLocal, run_local};
pub use workers::Workers;

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

/// Compiled here, where axum is.
#[cfg(doctest)]
#[doc = include_str!("../../convoke-http/README.md")]
struct ReadmeOfHttp;
