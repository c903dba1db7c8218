//! Scopes and errors: how failures travel, which scope to use, policies and bounds.
//!
//! # The first failure ends the scope
//!
//! A child or a body fails with `Err`, or by a panic. The scope then asks everything in it to stop, waits until all of it has
//! ended, and returns the failure. Inside, `?` works as everywhere.
//!
//! ```
//! use convoke::prelude::*;
//!
//! async fn part(n: u32) -> Result<u32, String> {
//!     if n == 2 { Err(format!("part {n} is missing")) } else { Ok(n) }
//! }
//!
//! let outcome = block_on(async {
//!     scope(async |s| {
//!         let parts: Vec<_> = (1..=3).map(|n| s.spawn_future(part(n))).collect();
//!         let mut sum = 0;
//!         for part in parts {
//!             sum += part.await?;
//!         }
//!         Ok(sum)
//!     })
//!     .await
//! });
//! assert_eq!(outcome.unwrap(), Err("part 2 is missing".to_owned()));
//! ```
//!
//! A panic of a child continues in the parent, with the child's message. No failure is lost, and none is reported twice.
//!
//! # Which scope
//!
//! - Use [`scope`](crate::scope()) if the children own what they use. They may run in parallel.
//! - Use [`local_scope`](crate::local_scope()) if they borrow from the parent. They run inside its task.
//! - Use [`blocking_scope`](crate::blocking_scope()) if the parent is blocking code. The children borrow and run in parallel.
//! - Use [`scope_with`](crate::scope::scope_with) if the scope is not to end at the first failure: the
//!   [`policy`](crate::scope::policy) module has first success, quorum, wait for all, and supervision with restarts.
//!
//! ```
//! use convoke::prelude::*;
//! use convoke::scope::policy::WaitForAll;
//! use convoke::scope::scope_with;
//!
//! let outcome = block_on(async {
//!     scope_with(WaitForAll, async |s| {
//!         s.spawn(async { Err::<(), _>("one fails") });
//!         s.spawn(async { Ok(println!("the other runs to its end")) });
//!     })
//!     .await
//! });
//! assert!(outcome.unwrap().is_err());
//! ```
//!
//! # Children that borrow
//!
//! A child of `scope` may run on another thread and owns what it uses. If the compiler says that a value "does not live long
//! enough" or that an "async block may outlive the current function", and asks for `'static`, the child borrows. Move the value
//! into it (`async move`), or open a [`local_scope`](crate::local_scope()), whose children borrow and run inside the task.
//!
//! ```
//! use convoke::prelude::*;
//!
//! let outcome = block_on(async {
//!     let text = String::from("one two");
//!     local_scope(async |s| {
//!         let words = s.spawn_future(async { text.split(' ').count() });
//!         let bytes = s.spawn_future(async { text.len() });
//!         (words.await, bytes.await)
//!     })
//!     .await
//! });
//! assert_eq!(outcome, Outcome::Value((2, 7)));
//! ```
//!
//! # Options of a child
//!
//! `spawn`, `spawn_future`, `named` and `child` are the same on every kind of scope. `child` returns a
//! [builder](crate::scope::Child) with the options: a name, an executor, a permit, restarts; and `local`, for a child that is not
//! `Send`. They combine:
//!
//! ```
//! use std::time::Duration;
//! use convoke::prelude::*;
//! use convoke::retry::Backoff;
//!
//! let pool = ThreadPool::new(1)?;
//! let outcome = block_on(async move {
//!     scope(async |s| {
//!         let schedule = Backoff::constant(Duration::from_millis(1)).up_to(2);
//!         let mut runs = 0;
//!         let worker = s
//!             .child()
//!             .name("worker")
//!             .on(&pool.executor())
//!             .restart(schedule)
//!             .spawn_future(move || {
//!                 runs += 1;
//!                 async move { if runs < 2 { Err("fell over") } else { Ok(runs) } }
//!             });
//!         worker.await
//!     })
//!     .await
//! });
//! assert_eq!(outcome, Outcome::Value(Ok(2)));
//! # std::io::Result::Ok(())
//! ```
//!
//! Use `spawn` if a failure of the child is a failure of the scope. Use `spawn_future` if you need the child's value: dropping the
//! handle stops the child, and `let _ = s.spawn_future(..)` drops it at once.
//!
//! # Bounds
//!
//! A [`Bound`](crate::scope::Bound) limits how many children run at a time. The permit is taken before the child is made, so
//! nothing piles up, and the child holds it until it has ended.
//!
//! ```
//! use convoke::prelude::*;
//! use convoke::scope::Bound;
//!
//! let done = block_on(async {
//!     let two_at_a_time = Bound::new(2);
//!     scope(async |s| {
//!         for _ in 0..10 {
//!             let permit = two_at_a_time.take(1).await;
//!             s.child().permit(permit).spawn(async { checkpoint().await });
//!         }
//!     })
//!     .await
//! });
//! assert_eq!(done, Outcome::Value(()));
//! ```
