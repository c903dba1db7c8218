//! Fairness and cores: what runs where, what a budget is, and how to see a task that starves others.
//!
//! # What runs where
//!
//! A runtime has an I/O context for each core, a pool of threads, and threads for blocking work. A context is one thread with one
//! queue, one driver for its sockets, and its timers. No task moves by itself: a child runs where its scope was opened, and the first
//! task of the program runs on the first context. Where other work runs is decided where it is started.
//!
//! | to use | write |
//! | --- | --- |
//! | all cores for connections | [`serve(address, handler)`](crate::net::serve()) |
//! | all cores for jobs that do I/O | `s.child().on(&runtime.next_context()).spawn(job)` |
//! | all cores for state of their own | [`on_each_context`](crate::runtime::RuntimeHandle::on_each_context) |
//! | all cores for computation | `s.child().on(&runtime.pool()).spawn(job)`, or [`run_on`](crate::run_on) to wait for the value |
//! | a thread that may block | [`blocking`](crate::blocking()) |
//!
//! `runtime` is what [`runtime::current`](crate::runtime::current()) returns, in any task of the program. The pool needs the
//! feature `pool` (`cargo add convoke --features pool`), so that programs which do not use it do not compile it:
//!
//! ```
//! use convoke::prelude::*;
//! use convoke::run_on;
//! use convoke::runtime;
//!
//! /// Sums numbers on the pool, while the caller's context serves others.
//! async fn sum(numbers: Vec<u64>) -> std::io::Result<u64> {
//!     let pool = runtime::current()?.pool();
//!     Ok(run_on(&pool, async move { numbers.iter().sum() }).await)
//! }
//!
//! #[convoke::main(contexts = 2, pool_threads = 2)]
//! async fn main() -> std::io::Result<()> {
//!     assert_eq!(sum(vec![1, 2, 3]).await?, 6);
//!     Ok(())
//! }
//! ```
//!
//! # Why a context has one thread
//!
//! Other designs (Asio, and the paper P4003 in its appendix A.3) let several threads run one context: a free thread takes the
//! next completion. Convoke does not. Instead, it has:
//!
//! - **One context for each core**, and connections that stay where they were accepted. The kernel spreads them
//!   ([`Accepting::PerContext`](crate::net::Accepting::PerContext)), or one acceptor does
//!   ([`Accepting::HandOver`](crate::net::Accepting::HandOver)).
//! - **A pool with work stealing** for computation: there a free thread does take the next piece of work.
//!
//! The reason is the price of crossing threads. On one thread, waking a task is a push to a list that no other thread touches, and its
//! reference counts, timers and sockets need no atomic operation. If any thread may run any task, a completion has to wake another
//! thread, and the task's data moves from cache to cache. `cargo run --release --example crossing` measures it;
//! on a two-core virtual machine that was busy with other work (compare the orders of magnitude, not the digits):
//!
//! | | time |
//! | --- | --- |
//! | a child that is spawned and awaited on the same context | 0.15 µs |
//! | `run_on` another context that sleeps, and back | 6.8 µs |
//! | `run_on` the pool, and back | 10 µs |
//!
//! So work that is shorter than some tens of microseconds, as most steps of a connection are, ends sooner where it is. Longer work
//! is worth a move, and the program says so with `run_on` or `child().on(..)`.
//!
//! The price is that a context whose connections are all busy does not help one that is overloaded. In practice the
//! load evens out with many connections. Where it does not (a few heavy clients), move the heavy part of their work to the pool: the
//! context then only passes bytes.
//!
//! Tasks of a context need not be `Send`, which a shared context could not offer, and a program that is correct on one thread stays so:
//! there is no need for a [`Strand`](crate::executor::Strand) around each connection.
//!
//! # The budget
//!
//! A task whose awaits are always ready at once, because its channel is always full or its timer always due, would never let others run.
//! So each poll of a task has a budget of 128 such awaits. Every await of Convoke's takes one: channels, locks, permits, timers,
//! limits, shields, streams, generators, sockets, TLS, request bodies. At zero the await yields: the task goes to the end of the queue, and its thread turns
//! to other tasks, timers, sockets and stop requests.
//!
//! - The budget is for each task and each poll. Futures inside of a task (`join`, `local_scope`, a foreign `select!`) share it.
//! - Futures of other crates take from it where they wait in ours. [`copy`](crate::io::copy()) and its like take one for each step of a
//!   foreign stream, too.
//! - It holds on every executor: contexts, pools of any priority, strands and limited views.
//! - A combinator that only calls your function takes nothing itself: [`retry`](crate::retry::retry) around a function that is ready at once, or
//!   a boxed future.
//! - Plain computation does not take from it: a loop without an await holds its thread. Call [`checkpoint`](crate::checkpoint) in it, which always
//!   yields, or move it to the pool.
//!
//! # How to see a task that starves others
//!
//! - [`diagnose`](crate::inspect::diagnose) watches while it exists: a task that holds its thread for longer than a limit is reported
//!   with its name, its spawn site and the place where it last waited.
//! - [`tree`](crate::inspect::tree()) shows at any time which tasks are running, queued or waiting. Many queued tasks beside one that is
//!   running, in several trees in a row, are a sign.
//! - At a second signal `#[convoke::main]` prints that tree by itself.
//!
//! ```
//! use convoke::inspect::{TaskState, tree};
//! use convoke::prelude::*;
//!
//! let queued = block_on(async {
//!     scope(async |s| {
//!         for n in 0..3 {
//!             s.named(format!("waiting {n}")).spawn(async { checkpoint().await });
//!         }
//!         // This task has not let the others run yet.
//!         tree().tasks().filter(|task| task.state() == TaskState::Queued).count()
//!     })
//!     .await
//! });
//! assert!(queued.unwrap() >= 3);
//! ```
