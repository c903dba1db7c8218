//! First steps: a program, a scope, children, their results.
//!
//! A program is an `async fn main` under `#[convoke::main]` (features `net` and `macros`, both on by default):
//!
//! ```no_run
//! #[convoke::main]
//! async fn main() {
//!     println!("hello");
//! }
//! ```
//!
//! Ordinary code runs a future with [`block_on`](crate::block_on). It returns an [`Outcome`](crate::Outcome), because a future can
//! also be stopped; `unwrap` takes the value.
//!
//! ```
//! use convoke::prelude::*;
//!
//! assert_eq!(block_on(async { 6 * 7 }).unwrap(), 42);
//! ```
//!
//! # Children
//!
//! Concurrent work is started in a scope. [`scope`](crate::scope()) runs a body, which gets a handle `s` to start children with,
//! and ends when the body and all children have ended. Nothing outlives it.
//!
//! ```
//! use std::time::Duration;
//! use convoke::prelude::*;
//!
//! let sum = block_on(async {
//!     scope(async |s| {
//!         // `spawn_future` returns a handle to await.
//!         let slow = s.spawn_future(async {
//!             sleep(Duration::from_millis(2)).await;
//!             40
//!         });
//!         let quick = s.spawn_future(async { 2 });
//!         // `spawn` starts a child whose result is not awaited.
//!         s.spawn(async { println!("working") });
//!         slow.await + quick.await
//!     })
//!     .await
//! });
//! assert_eq!(sum.unwrap(), 42);
//! ```
//!
//! A child owns what it uses (`async move`). To borrow from the function that opens the scope, use [`local_scope`](crate::local_scope()), whose
//! children run inside the same task:
//!
//! ```
//! use convoke::prelude::*;
//!
//! let words = ["one", "two", "three"];
//! let total = block_on(async {
//!     local_scope(async |s| {
//!         let count = |word: &'static str| s.spawn_future(async move { word.len() });
//!         let lengths: Vec<_> = words.into_iter().map(count).collect();
//!         let mut total = 0;
//!         for length in lengths {
//!             total += length.await;
//!         }
//!         total
//!     })
//!     .await
//! });
//! assert_eq!(total.unwrap(), 11);
//! ```
//!
//! # A few futures at once
//!
//! [`join`](crate::join) runs futures together in one task and returns all results, [`try_join`](crate::try_join) ends at the first
//! error, [`race`](crate::race) at the first result. The others are asked to stop, and awaited.
//!
//! ```
//! use std::time::Duration;
//! use convoke::prelude::*;
//!
//! let first = block_on(async {
//!     race((
//!         async {
//!             sleep(Duration::from_secs(3600)).await;
//!             "the hour"
//!         },
//!         async { "at once" },
//!     ))
//!     .await
//! });
//! assert_eq!(first.unwrap(), "at once");
//! ```
