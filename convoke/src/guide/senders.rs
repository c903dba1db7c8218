//! Senders: work composed as values (feature `sender`).
//!
//! A [`Sender`](crate::sender::Sender) describes work that has not started, as an iterator describes values that were not taken. It
//! completes with a value, an error, stopped, or a panic. The names are those of C++26's `std::execution`.
//!
//! ```
//! use convoke::sender::prelude::*;
//!
//! let work = when_all((just(6), just(7))).then(|(a, b)| a * b);
//! assert_eq!(sync_wait(work), Outcome::Value(42));
//! ```
//!
//! - Use tasks for code that reads from top to bottom. Use senders to compose work once and run it many times without an
//!   allocation, or to write a library that does not care who runs it.
//! - [`sync_wait`](crate::sender::sync_wait()) starts a sender from ordinary code and waits for it. A task starts one with `.await`.
//! - [`task`](crate::task::task) makes a sender of a future.
//! - A [`CountingScope`](crate::sender::CountingScope) counts work that is spawned into it, and is joined before it is dropped.
//!
//! ```
//! use convoke::prelude::*;
//! use convoke::sender::prelude::*;
//!
//! let pool = ThreadPool::new(1).unwrap();
//! let executor = pool.executor();
//! let outcome = block_on(async move {
//!     // Awaited on this task, run on the pool.
//!     just(20).continues_on(&executor).then(|n| n + 1).await * 2
//! });
//! assert_eq!(outcome, Outcome::Value(42));
//! ```
//!
//! A closure that panics completes its sender as panicked; `sync_wait` and `.await` resume the panic. A sender whose error type is
//! [`Never`](crate::Never) cannot fail, and awaiting it yields the plain value.
