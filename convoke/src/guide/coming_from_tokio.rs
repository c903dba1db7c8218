//! For people who know tokio: what things are called here, and what is different about them. There is nothing else in here.
//!
//! # Names
//!
//! | tokio | Convoke |
//! | --- | --- |
//! | `#[tokio::main]`, `Runtime`, `Builder` | `#[convoke::main]`, [`Runtime`](crate::runtime::Runtime), [`Runtime::builder`](crate::runtime::Runtime::builder) |
//! | `Handle::current` | [`runtime::current`](crate::runtime::current()) |
//! | a loop of `accept` and `spawn`, with a `Semaphore` and a `TaskTracker` | [`net::serve`](crate::net::serve()) |
//! | `tokio::spawn`, `JoinSet`, `TaskTracker` | [`scope`](crate::scope()), in it [`spawn`](crate::Scope::spawn); what they return as it comes: [`results`](crate::Scope::results) |
//! | `JoinHandle`, `abort`, `is_finished` | [`spawn_future`](crate::Scope::spawn_future) returns a [`Handle`](crate::scope::Handle); [`request_stop`](crate::scope::Handle::request_stop), with a reason; [`is_finished`](crate::scope::Handle::is_finished) |
//! | `AbortHandle` | [`StopHandle`](crate::scope::StopHandle), from [`stop_handle`](crate::scope::Handle::stop_handle) |
//! | `spawn_local`, `LocalSet` | [`child().local()`](crate::scope::Child::local); for children that borrow, [`local_scope`](crate::local_scope()) |
//! | `spawn_blocking`, `Handle::block_on` in it | [`blocking`](crate::blocking()), [`Inside::block_on`](crate::executor::Inside::block_on) |
//! | `JoinError` | a panic goes on where a child is awaited, or ends its scope; a stop unwinds, or is caught by [`catch_stopped`](crate::catch_stopped). Both as a value: [`outcome`](crate::scope::Handle::outcome) |
//! | `select!` | [`race`](crate::race); beside a `match` on an `enum` of one's own, see below |
//! | `join!`, `try_join!` | [`join`](crate::join), [`try_join`](crate::try_join) |
//! | `timeout`, `timeout_at` | [`timeout`](crate::timeout), [`deadline`](crate::time::deadline); `?` makes an `io::Error` of [`Elapsed`](crate::time::Elapsed) |
//! | `sleep`, `interval`, `MissedTickBehavior` | [`sleep`](crate::time::sleep), [`interval`](crate::time::interval()), [`MissedTicks`](crate::time::MissedTicks) |
//! | `Sleep::reset`, `is_elapsed` | [`Sleeping::reset`](crate::time::Sleeping::reset), [`is_elapsed`](crate::time::Sleeping::is_elapsed): of `sleep(..).into_future()`, pinned |
//! | `Interval::reset`, `reset_at`, `reset_after` | the same, on [`Interval`](crate::time::Interval::reset) |
//! | `tokio_util::time::DelayQueue` | [`time::DelayQueue`](crate::time::DelayQueue); `remove` and `reset` return if the item was there, and do not panic |
//! | `time::Instant::now`, `pause`, `advance` | [`time::now`](crate::time::now), `#[convoke::test(virtual_time)]` |
//! | `yield_now` | [`checkpoint`](crate::checkpoint): also a place to hear of a stop |
//! | `CancellationToken`, `child_token` | the stop that all work inherits; by hand, [`StopSource`](crate::StopSource), [`StopToken::child`](crate::StopToken::child) |
//! | `cancelled().await`, `run_until_cancelled` | [`StopToken::stopped`](crate::StopToken::stopped), [`run_until_stopped`](crate::task::run_until_stopped) |
//! | `DropGuard`, clean-up in `Drop` | [`using`](crate::using), [`ensure`](crate::ensure), [`cleanups`](crate::cleanup::cleanups()), which are awaited |
//! | `task_local!`, `LocalKey::scope` | [`Local`](crate::env::Local) keys, [`with_local`](crate::env::with_local), [`current::local`](crate::env::current::local) |
//! | `Semaphore` around `spawn` | [`Bound`](crate::scope::Bound), [`child().permit(..)`](crate::scope::Child::permit) |
//! | `Mutex`, `RwLock`, `Semaphore`, `Barrier`, `OnceCell` | the same, in [`sync`](crate::sync) |
//! | `Notify`, `notify_one`, `notify_waiters` | the same, [`sync::Notify`](crate::sync::Notify); a flag that stays set is an [`Event`](crate::sync::Event) |
//! | `mpsc`, `mpsc::unbounded_channel` | [`mpsc`](crate::sync::mpsc), [`mpsc::unbounded`](crate::sync::mpsc::unbounded); with several receivers, [`mpmc`](crate::sync::mpmc) |
//! | `Sender::capacity`, `max_capacity` | [`capacity`](crate::sync::mpsc::Sender::capacity) is `max_capacity`; see also [`len`](crate::sync::mpsc::Sender::len) |
//! | `reserve`, `try_reserve`, `reserve_owned`, `Permit` | the same, on [`Sender`](crate::sync::mpsc::Sender::reserve); [`SendPermit`](crate::sync::mpsc::SendPermit). `reserve_owned` borrows the sender, and its permit has a clone |
//! | `blocking_send`, `blocking_recv` | the same, on [all channels](crate::sync::mpsc::Sender::blocking_send) |
//! | `ReceiverStream`, `BroadcastStream`, `WatchStream` of `tokio_stream` | none: each receiver is a `Stream` |
//! | `oneshot`, `receiver.await` | the same, [`oneshot`](crate::sync::oneshot); the error is [`Closed`](crate::sync::oneshot::Closed); [`recv`](crate::sync::oneshot::Receiver::recv) keeps the receiver |
//! | `broadcast`, `RecvError::Lagged` | the same, [`broadcast`](crate::sync::broadcast); without losses, [`lossless_broadcast`](crate::sync::lossless_broadcast), whose `send` waits |
//! | `watch`, `changed`, `borrow_and_update`, `wait_for` | the same, [`watch`](crate::sync::watch::Receiver) |
//! | `send_modify`, `send_replace`, `send_if_modified` | [`modify`](crate::sync::watch::Sender::modify), [`replace`](crate::sync::watch::Sender::replace), [`modify_if`](crate::sync::watch::Sender::modify_if) |
//! | `StreamExt::buffer_unordered`, `for_each_concurrent` | [`map_concurrent`](crate::task::map_concurrent), [`for_each_concurrent`](crate::task::for_each_concurrent) |
//! | `async_stream::stream!` | [`generator`](crate::task::generator()); for an iterator, [`sync_generator`](crate::task::sync_generator()) |
//! | `TcpListener`, `TcpStream`, `UdpSocket`, `UnixListener`, … | the same, in [`net`](crate::net), with `futures_io`'s traits and methods of their own |
//! | `TcpSocket` | [`ListenOptions`](crate::net::ListenOptions), [`set_option`](crate::net::SocketStream::set_option); all else with `socket2`, by `from_std` and `AsFd` |
//! | `io::copy`, `copy_bidirectional`, `duplex` | the same, in [`stream`](crate::io) |
//! | `AsyncReadExt`, `BufReader`, `lines` | those of `futures-lite` or `futures` |
//! | `signal::ctrl_c`, `signal::unix::signal` | [`signal::ctrl_c`](crate::signal::ctrl_c), [`signal::signals`](crate::signal::signals) |
//! | console, task dumps | [`tree`](crate::inspect::tree()), [`diagnose`](crate::inspect::diagnose) |
//! | loom, turmoil | loom models (feature `loom`), simulations (feature `sim`) |
//!
//! # A stop is not an error, and not a drop
//!
//! Nothing is cancelled by dropping it. What is asked to stop, by a `timeout`, by a `race` that it has lost, by Ctrl-C, ends at the
//! `await` that it is at: its frames are dropped from the inside out, each clean-up on the way is awaited, and the function is
//! not resumed. So there is nothing to check after an `await`, and no `biased;` and no list of what is "cancel safe": a stopped
//! `recv`, `read`, `accept`, `lock` or `acquire` has taken nothing.
//!
//! - What must not be left half-done is in a [`shield`](crate::shield), and hears of the stop behind it.
//! - Whoever asks a child to stop and then awaits it ends stopped, too, as it has no value to go on with; unless it says
//!   [`catch_stopped`](crate::catch_stopped).
//! - **Futures of other crates do not hear of it.** `async_channel`'s `recv`, or `std::future::pending`, is dropped where it waits, as
//!   tokio would do: there the rules of "cancel safe" still apply. A [`shield`](crate::shield) keeps it, and
//!   [`ForeignFutures`](crate::env::ForeignFutures) changes that for everything below. Over our sockets, TLS or HTTP of other crates
//!   does hear of it.
//!
//! # Channels
//!
//! They have tokio's names and semantics, but for these:
//!
//! - A stop loses nothing. A stopped `recv`, `reserve`, `notified` or `next` has taken nothing, and what it was about to get goes to
//!   the next that waits. In tokio that is true of most calls when they are dropped, and the documentation says of which.
//! - [`mpsc::Receiver::close`](crate::sync::mpsc::Receiver::close) takes `&self`, and either half can close. A permit that was
//!   reserved before still sends, and `recv` waits for it.
//! - Messages of a [`broadcast`](crate::sync::broadcast) are dropped when all receivers have received them, and the last one gets the
//!   message without a clone. Its capacity is exact, and not rounded up to a power of two.
//! - [`Notify::notified`](crate::sync::Notify::notified) needs no `enable`: a `notify_waiters` that comes after the call is heard, also
//!   before the first poll, and a `notify_one` is stored.
//! - A `blocking_` call on the thread of a run loop, or in a task, panics. In [`blocking`](crate::blocking()) it is right.
//!
//! # The first failure ends a scope
//!
//! An `Err` or a panic of a child asks the others to stop, and is the result of the scope. That is right for the parts of one job. The
//! clients of a server are not that: [`serve`](crate::net::serve()) reports their errors and panics, and the others go on; for other
//! children, [`supervise`](crate::Scope::supervise) does. Here is a server on all cores that survives its clients, running out of
//! descriptors, and SIGTERM:
//!
//! ```no_run
//! use std::io;
//! use std::net::SocketAddr;
//! use std::time::Duration;
//! use convoke::net::{TcpStream, serve};
//! use convoke::prelude::*;
//!
//! async fn client(stream: TcpStream, _from: SocketAddr) -> io::Result<()> {
//!     let mut request = [0; 4096];
//!     loop {
//!         // Idle connections are closed after a minute, and when the program is asked to stop.
//!         let length = match timeout(Duration::from_secs(60), stream.read(&mut request)).await? {
//!             Ok(0) => return Ok(()),
//!             read => read?,
//!         };
//!         // A request that was read is answered. That may take five seconds, and three after a stop request.
//!         let answer = timeout(Duration::from_secs(5), answer(&stream, &request[..length]));
//!         shield(answer).grace(Duration::from_secs(3)).await??;
//!     }
//! }
//!
//! async fn answer(stream: &TcpStream, request: &[u8]) -> io::Result<()> {
//!     sleep(Duration::from_millis(10)).await; // Ask a database, and so on.
//!     stream.write_all(request).await
//! }
//!
//! #[convoke::main(grace_seconds = 20)] // After that, or at a second signal, it is ended, and prints what still runs.
//! async fn main() -> io::Result<()> {
//!     serve("127.0.0.1:7000", client).connections(1000).await
//! }
//! ```
//!
//! # A loop around `select!`
//!
//! The branches are futures of one type of event, and the rest is a `match`. The branch for the shutdown is not one of them: the
//! stop comes by itself, and is caught where there is something left to do.
//!
//! ```
//! use std::time::Duration;
//! use convoke::prelude::*;
//! use convoke::sync::mpsc;
//! use convoke::time::interval;
//!
//! enum Event {
//!     Tick,
//!     Message(Option<u32>),
//!     Stop,
//! }
//!
//! async fn collect(mut messages: mpsc::Receiver<u32>) -> Vec<u32> {
//!     let mut ticks = interval(Duration::from_millis(1));
//!     let mut all = Vec::new();
//!     loop {
//!         let event = race((
//!             async { Event::Message(messages.recv().await) },
//!             async {
//!                 ticks.tick().await;
//!                 Event::Tick
//!             },
//!         ));
//!         match catch_stopped(event).await.unwrap_or(Event::Stop) {
//!             Event::Tick => println!("{} so far", all.len()),
//!             Event::Message(Some(message)) => all.push(message),
//!             Event::Message(None) => return all,
//!             Event::Stop => {
//!                 messages.close(); // Nothing more is sent, and what was sent is here.
//!                 while let Ok(message) = messages.try_recv() {
//!                     all.push(message);
//!                 }
//!                 return all;
//!             }
//!         }
//!     }
//! }
//!
//! let outcome = block_on(async {
//!     scope(async |s| {
//!         let (sender, receiver) = mpsc::channel(8);
//!         let collecting = s.spawn_future(collect(receiver));
//!         for n in 0..20 {
//!             sender.send(n).await.unwrap();
//!         }
//!         collecting.request_stop(StopReason::Requested);
//!         collecting.await.len()
//!     })
//!     .await
//! });
//! assert_eq!(outcome, Outcome::Value(20));
//! ```
//!
//! - Of branches that are ready at once the first in order wins, always: put what must not starve first.
//! - The losers are asked to stop, and awaited. **What is to go on over several rounds is a child**: start it with
//!   `spawn_future`, and await `&mut handle` in the branch. A future that is pinned outside of the loop, as for `select!`, is
//!   stopped in the first round that it loses, and has no value any more.
//! - Where branches have nothing in common but that they run at once, they are children of a scope, with a loop each.
//!
//! # Where things run
//!
//! A runtime has one I/O context, a thread with its own sockets and timers, for each core, and a pool of threads beside them. No task
//! moves by itself: a child runs where its scope was opened, which for `main` is the first context. To use all cores, say so:
//! [`serve`](crate::net::serve()) for connections; for other work the contexts and the pool of
//! [`runtime::current`](crate::runtime::current()), with [`run_on`](crate::run_on) or [`child().on(..)`](crate::scope::Child::on);
//! [`blocking`](crate::blocking()) for functions that block. The chapter [`fairness_and_cores`](super::fairness_and_cores) has the
//! reasons.
