//! Stopping and clean-up: what a stop is, what it waits for, and how to shield work from it.
//!
//! # A stop is a request, then an unwinding
//!
//! A task is asked to stop by its scope (a sibling failed), by a `timeout` or a `race` around it, by [`StopSource`], or by a signal.
//! It notices at its next `await` that waits: the function is not resumed, its frames are dropped from the inside out, and every
//! clean-up on the way is awaited. There is nothing to check after an `await`, and a stopped `recv`, `read`, `accept` or `lock` has
//! taken nothing.
//!
//! [`StopSource`]: crate::StopSource
//!
//! ```
//! use std::time::Duration;
//! use convoke::prelude::*;
//!
//! let ended = block_on(async {
//!     let work = ensure(
//!         // the body was stopped (deadline passed)
//!         async |exit| println!("the body {exit}"),
//!         async { sleep(Duration::from_secs(3600)).await },
//!     );
//!     timeout(Duration::from_millis(1), work).await
//! });
//! assert!(ended.unwrap().is_err());
//! ```
//!
//! A request goes down the tree at the moment it is made: from a task to the scopes that are open in it, to their children, and to
//! theirs. A child is asked to stop even while its parent is busy, and [`tree`](crate::inspect::tree()) shows it at once. So are the
//! siblings of a child that fails.
//!
//! Work that is awaited directly (`run_on`, `task(…).await`) hears of a stop when the task that awaits it is next polled, for which the
//! request wakes it. It is late only if that task computes in another branch, or if its thread is busy: a place in the list of the task
//! would cost each such `await` a lock. Where that delay matters, make the work a child: `s.child().on(&executor).spawn_future(work)`.
//!
//! # Asking one task to stop
//!
//! Every handle can ask its child to stop, for a reason. [`Handle::stop_handle`](crate::scope::Handle::stop_handle) returns a
//! [`StopHandle`](crate::scope::StopHandle) for other places of the program: it can be cloned and sent, and keeps neither the task
//! nor its result. A task that awaits a child which was stopped is stopped with it;
//! [`Handle::outcome`](crate::scope::Handle::outcome) returns the stop as a value instead, and a panic too.
//!
//! ```
//! use convoke::prelude::*;
//! use convoke::task::forever;
//!
//! let ended = block_on(async {
//!     scope(async |s| {
//!         let session = s.spawn_future(async { forever().await });
//!         let stop = session.stop_handle();
//!         s.spawn(async move { stop.request_stop(StopReason::Named("logged out")) });
//!         let outcome: Outcome<()> = session.outcome().await;
//!         outcome
//!     })
//!     .await
//! });
//! assert_eq!(ended.unwrap(), Outcome::Stopped);
//! ```
//!
//! # Resources
//!
//! A resource that is closed by awaiting implements [`AsyncClose`](crate::AsyncClose), and [`using`](crate::using) runs a body with
//! it. The close is awaited on every exit, shielded from the stop, and told how the body ended ([`Exit`](crate::Exit)). Use
//! [`ensure`](crate::ensure) if the clean-up is a closure, and [`cleanups`](crate::cleanup::cleanups()) if there are several that
//! come up while the body runs.
//!
//! A clean-up has a grace period ([`GRACE`](crate::cleanup::GRACE)), 30 seconds by default; then it is asked to stop itself, and the
//! program reports it.
//!
//! # Shields
//!
//! [`shield`](crate::shield) keeps a stop away from a future: it runs to its end, and the stop takes effect after it. With
//! `.grace(duration)` it does so for a limited time.
//!
//! ```
//! use std::time::Duration;
//! use convoke::prelude::*;
//! use convoke::sync::Event;
//!
//! let written = Event::new();
//! let outcome = block_on(async {
//!     let write = async {
//!         shield(async {
//!             sleep(Duration::from_millis(3)).await;
//!             written.set();
//!         })
//!         .await;
//!         sleep(Duration::from_secs(3600)).await; // The stop takes effect here.
//!     };
//!     timeout(Duration::from_millis(1), write).await
//! });
//! assert!(outcome.unwrap().is_err() && written.is_set());
//! ```
//!
//! # Going on after a stop
//!
//! [`catch_stopped`](crate::catch_stopped) runs a future and returns `Err(Stopped)` if it was stopped. If the task itself was
//! asked to stop, it still is: its next `await` that waits ends it, and a line on stderr says so. Clean-up belongs in `using` or
//! `ensure`, which are shielded.
//!
//! # Waiting for a stop
//!
//! [`StopToken::stopped`](crate::StopToken::stopped) waits for a stop without ending by it: for code that has something to do at that
//! moment. [`run_until_stopped`](crate::task::run_until_stopped) runs a future until a token of the program's own is stopped, and
//! then goes on.
//!
//! ```
//! use convoke::prelude::*;
//! use convoke::task::{forever, run_until_stopped};
//!
//! let rounds = block_on(async {
//!     let mut rounds = 0;
//!     while rounds < 3 {
//!         // Each round is asked to stop by a source of its own, and the task goes on.
//!         let reload = StopSource::new();
//!         let token = reload.token();
//!         let round = async move {
//!             reload.request_stop(StopReason::Named("reload"));
//!             forever().await
//!         };
//!         let ended: Result<(), Stopped> = run_until_stopped(token, round).await;
//!         assert!(ended.is_err());
//!         rounds += 1;
//!     }
//!     rounds
//! });
//! assert_eq!(rounds, Outcome::Value(3));
//! ```
//!
//! # Foreign futures
//!
//! A future of another crate does not notice a stop. By default it gives way: it is dropped where it waits, as its own runtime would
//! cancel it, and the function that awaits it ends as stopped. So `timeout(second, foreign)` takes a second. The clean-up around it
//! is awaited, and a [`shield`](crate::shield) keeps it. Anything that waits on Convoke's sockets, channels and timers notices a stop
//! by itself, and loses nothing.
//!
//! If a foreign future must not be dropped half-way, shield it, or set the policy
//! [`ForeignFutures::RunToEnd`](crate::env::ForeignFutures) for everything below. Then [`stoppable`](crate::task::stoppable) makes
//! single ones give way.
//!
//! ```
//! use std::time::Duration;
//! use convoke::prelude::*;
//!
//! let outcome = block_on(async {
//!     // Not a future of Convoke, and never ready.
//!     timeout(Duration::from_millis(1), std::future::pending::<()>()).await
//! });
//! assert!(outcome.unwrap().is_err());
//! ```
