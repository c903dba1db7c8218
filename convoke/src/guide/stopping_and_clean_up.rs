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
//!         async |exit| println!("the body {exit}"), // the body was stopped (deadline passed)
//!         async { sleep(Duration::from_secs(3600)).await },
//!     );
//!     timeout(Duration::from_millis(1), work).await
//! });
//! assert!(ended.unwrap().is_err());
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
//! [`shield`](crate::shield) keeps a stop away from a future: it runs to its end, and the stop takes effect behind it. With
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
//! [`catch_stopped`](crate::catch_stopped) runs a future and returns `Err(Stopped)` if it was stopped. The task itself is still
//! asked to stop, if it was: its next `await` that waits ends it, and a line on stderr says so. Clean-up belongs into `using` or
//! `ensure`, which are shielded.
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
