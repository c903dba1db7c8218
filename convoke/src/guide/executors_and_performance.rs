//! Executors and performance: what runs where, and how to choose.
//!
//! A task runs on the executor of its environment, and resumes there after every `await`. The executor is chosen where work is
//! launched, and inherited by everything below.
//!
//! | use | if |
//! | --- | --- |
//! | an I/O context (`#[convoke::main]`, [`Runtime`](crate::runtime::Runtime)) | work waits for sockets; its tasks need not be `Send` |
//! | [`ThreadPool`](crate::ThreadPool) (feature `pool`) | work computes, and is to be spread over threads |
//! | [`blocking`](crate::blocking()) | a function blocks |
//! | [`Strand`](crate::executor::Strand) | pieces of work must not run at the same time, on any executor |
//! | [`Limited`](crate::executor::Limited) | at most `n` pieces of work run at the same time, on any executor |
//! | [`RunLoop`](crate::executor::RunLoop) | one thread of yours runs the work: a test, a tool, a loop of a foreign library |
//!
//! [`run_on`](crate::run_on) runs a future elsewhere and comes back; [`scope_on`](crate::scope::scope_on) starts its children there.
//!
//! ```
//! use convoke::prelude::*;
//! use convoke::run_on;
//!
//! let pool = ThreadPool::new(2).unwrap();
//! let executor = pool.executor();
//! let elsewhere = block_on(async move {
//!     let here = std::thread::current().id();
//!     run_on(&executor, async move { std::thread::current().id() != here }).await
//! });
//! assert!(elsewhere.unwrap());
//! ```
//!
//! # Fairness
//!
//! A task keeps its thread until it waits. An `await` of something that is ready, such as a channel with messages or a lock that is
//! free, does not wait. So that a loop of those does not keep the thread for ever, each poll of a task has a
//! [budget](crate::task::budget) of 128 such awaits. Then the task goes behind the others of its executor, and the executor checks
//! timers, sockets and signals. Futures of your own take part with [`poll_proceed`](crate::task::budget::poll_proceed).
//!
//! # What things cost
//!
//! - A task is one allocation, from the frame allocator of its chain, which caches memory per thread: in a steady state spawning
//!   allocates nothing. [`alloc`](crate::alloc) has others: bounded, counting, or your own.
//! - A wait does not allocate: timers, locks and channels link the waiting futures themselves.
//! - A task that moves between threads costs more than one that stays. Start children where their data is.
//! - A long computation holds its thread. Let others run with [`checkpoint`](crate::checkpoint), or move it to a pool;
//!   [`diagnose`](crate::inspect::diagnose) names tasks that hold their thread.
