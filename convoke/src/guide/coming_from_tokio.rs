//! Coming from tokio: the names of things in Convoke, and the differences.
//!
//! Five things differ in meaning, and each has a section: [a stop](#a-stop-is-not-an-error-and-not-a-drop) is not a drop, [it
//! holds](#a-stop-holds) until the task has ended, [futures of other crates](#futures-of-other-crates) do not hear of it,
//! [channels](#channels) lose nothing by it, and [the first failure](#the-first-failure-ends-a-scope) ends a scope.
//!
//! # Names
//!
//! The tables follow the modules of tokio 1.54, and `task`, `sync` and `time` of `tokio_util`. What has no counterpart is in [the last
//! one](#what-there-is-not).
//!
//! ## Programs and runtimes
//!
//! | tokio | Convoke |
//! | --- | --- |
//! | `#[tokio::main]`, `#[tokio::test]` | `#[convoke::main]`, `#[convoke::test]` |
//! | `Runtime`, `LocalRuntime`, `block_on` | [`Runtime`](crate::runtime::Runtime), [`block_on`](crate::block_on()); for one thread, [`io_context`](crate::driver::io_context) |
//! | `Builder`, `worker_threads`, `max_blocking_threads` | [`Runtime::builder`](crate::runtime::Runtime::builder), [`contexts`](crate::runtime::RuntimeBuilder::contexts), [`pool_threads`](crate::runtime::RuntimeBuilder::pool_threads), [`blocking_threads`](crate::runtime::RuntimeBuilder::blocking_threads) |
//! | `new_current_thread`, `new_multi_thread`, `enable_io`, `enable_time`, `event_interval`, … | none: there is one kind, with all parts; its contexts poll for a while before they sleep ([`spin`](crate::runtime::RuntimeBuilder::spin)) |
//! | `unhandled_panic` | a panic ends its scope, and goes on in the task that opened it |
//! | `Handle::current`, `try_current` | [`runtime::current`](crate::runtime::current()), a `Result` |
//! | `Handle::spawn`, `Handle::enter` from other threads | [`RuntimeHandle::launch`](crate::runtime::RuntimeHandle::launch), [`launch`](crate::launch()): what it returns waits for the work |
//! | `shutdown_timeout`, `shutdown_background` | none: the runtime ends when its work has; the limit is the grace period of `#[convoke::main(grace_seconds = 20)]` |
//! | a loop of `accept` and `spawn`, with a `Semaphore` and a `TaskTracker` | [`net::serve`](crate::net::serve()) |
//! | `axum::serve(listener, router).with_graceful_shutdown(..)`, hyper | `Server::new(listener, tower(router))` of the crate `convoke-http`; the drain is built in |
//! | `reqwest::Client::new()`, hyper-util's client | `Client::run(async \|client\| ..)` of the crate `convoke-http`: its connections are closed when the body has ended |
//! | `reqwest`'s `get(url).header(..).body(..).send().await?.text()`, `Client::execute`, `timeout` | the same words; `client.request(request).send()`; `total_time`, and a limit for each phase |
//! | `reqwest::Error::is_timeout`, `is_connect`, retries by hand | the same, and `ClientError::may_have_been_processed`; `retry(Backoff)` |
//! | one handler of a program that stays on tokio | `run` of the crate `convoke-tokio` |
//! | console, task dumps, `Handle::dump`, `task::id` | [`tree`](crate::inspect::tree()), [`diagnose`](crate::inspect::diagnose), [`named`](crate::Scope::named) |
//! | `on_task_spawn` and the other hooks of a runtime, a `tracing` span for each task | [`HOOKS`](crate::inspect::HOOKS) in the environment of the work |
//! | a `Runtime` inside the loop of another library | [`RunLoop::as_future`](crate::executor::RunLoop::as_future), [`IoContext::as_future`](crate::driver::IoContext::as_future), or turns: [`IoContext::turn`](crate::driver::IoContext::turn) |
//! | loom, turmoil, `start_paused` | loom models (feature `loom`), simulations (feature `sim`), `#[convoke::test(virtual_time)]` |
//!
//! ## Tasks
//!
//! | tokio | Convoke |
//! | --- | --- |
//! | `tokio::spawn`, `JoinSet`, `TaskTracker` | [`scope`](crate::scope()), in it [`spawn`](crate::Scope::spawn); it is closed, and waits, by itself |
//! | `join_next`, `join_all`; `JoinMap`, `JoinQueue` | [`results`](crate::Scope::results), in the order in which they end; with a key, return it with the value; in the order of their start, [`map_concurrent(..).in_order()`](crate::task::MapConcurrent::in_order) |
//! | `try_join_next`, `JoinSet::len` | a [`Handle`](crate::scope::Handle) and its [`is_finished`](crate::scope::Handle::is_finished); a counter of one's own |
//! | `abort_all`, `JoinSet::shutdown` | [`Scope::request_stop`](crate::Scope::request_stop) |
//! | `JoinHandle`, `abort`, `is_finished` | [`spawn_future`](crate::Scope::spawn_future) returns a [`Handle`](crate::scope::Handle); [`request_stop`](crate::scope::Handle::request_stop), with a reason; [`is_finished`](crate::scope::Handle::is_finished) |
//! | `AbortHandle`, `AbortOnDropHandle` | [`StopHandle`](crate::scope::StopHandle), from [`stop_handle`](crate::scope::Handle::stop_handle); a `Handle` that is dropped asks its child to stop |
//! | `JoinError` | a panic goes on where a child is awaited, or ends its scope; a stop unwinds, or is caught by [`catch_stopped`](crate::catch_stopped). Both as a value: [`outcome`](crate::scope::Handle::outcome) |
//! | `task::Builder::name` | [`named`](crate::Scope::named), [`child().name(..)`](crate::scope::Child::name) |
//! | `spawn_on`, `LocalPoolHandle::spawn_pinned` | [`child().on(..)`](crate::scope::Child::on), [`scope_on`](crate::scope::scope_on), [`run_on`](crate::run_on) |
//! | `spawn_local`, `LocalSet`, `run_until` | [`child().local()`](crate::scope::Child::local); for children that borrow, [`local_scope`](crate::local_scope()) |
//! | `spawn_blocking`, `Handle::block_on` in it, `SyncIoBridge` | [`blocking`](crate::blocking()), [`Inside::block_on`](crate::executor::Inside::block_on) |
//! | `yield_now` | [`checkpoint`](crate::checkpoint): also a place to hear of a stop |
//! | `coop::poll_proceed`, `consume_budget`, `unconstrained` | [`budget::poll_proceed`](crate::task::budget::poll_proceed), [`checkpoint`](crate::checkpoint), [`budget::unconstrained`](crate::task::budget::unconstrained) |
//! | `task_local!`, `LocalKey::scope`, `get` | [`Local`](crate::env::Local) keys, [`with_local`](crate::env::with_local), [`current::local`](crate::env::current::local); inherited by children, which tokio's are not |
//! | `Semaphore` around `spawn` | [`Bound`](crate::scope::Bound), [`child().permit(..)`](crate::scope::Child::permit) |
//! | `StreamExt::buffer_unordered`, `for_each_concurrent` | [`map_concurrent`](crate::task::map_concurrent), [`for_each_concurrent`](crate::task::for_each_concurrent) |
//! | `async_stream::stream!` | [`generator`](crate::task::generator()); for an iterator, [`sync_generator`](crate::task::sync_generator()) |
//!
//! ## Several futures at once, and time
//!
//! | tokio | Convoke |
//! | --- | --- |
//! | `select!` | [`select!`](crate::select): the losers are stopped and awaited, see [below](#a-loop-around-select); without a macro, for values of one type, [`race`](crate::race) |
//! | `biased;`, `if` and `else` in `select!` | always biased; a branch that is off is [`forever`](crate::task::forever); instead of `else`, match the value: `None => …` |
//! | `join!`, `try_join!`, `pin!` | [`join`](crate::join), [`try_join`](crate::try_join), `std::pin::pin!` |
//! | `timeout`, `timeout_at` | [`timeout`](crate::timeout), [`timeout_at`](crate::time::timeout_at); `?` makes an `io::Error` of [`Elapsed`](crate::time::Elapsed) |
//! | `sleep`, `sleep_until` | [`sleep`](crate::time::sleep), [`sleep_until`](crate::time::sleep_until) |
//! | `interval`, `interval_at`, `MissedTickBehavior` | [`interval`](crate::time::interval()), [`interval_at`](crate::time::interval_at), [`MissedTicks`](crate::time::MissedTicks) |
//! | `Sleep::reset`, `is_elapsed` | [`Sleeping::reset`](crate::time::Sleeping::reset), [`is_elapsed`](crate::time::Sleeping::is_elapsed): of `sleep(..).into_future()`, pinned |
//! | `Interval::reset`, `reset_at`, `reset_after`, `reset_immediately` | the same, on [`Interval`](crate::time::Interval::reset) |
//! | `tokio_util::time::DelayQueue` | [`time::DelayQueue`](crate::time::DelayQueue); `remove` and `reset` return if the item was there, and do not panic |
//! | `time::Instant` | `std::time::Instant`; [`time::now`](crate::time::now) is the clock of the task, virtual or real |
//! | `pause`, `advance`, `resume` | `#[convoke::test(virtual_time)]`: time jumps to the next timer when all wait; by hand, [`Clockwork`](crate::testing::Clockwork) |
//!
//! ## Cancellation and clean-up
//!
//! | tokio | Convoke |
//! | --- | --- |
//! | `CancellationToken`, `child_token` | the stop that all work inherits; by hand, [`StopSource`](crate::StopSource), [`StopToken::child`](crate::StopToken::child) |
//! | `cancel`, `is_cancelled` | [`request_stop`](crate::StopSource::request_stop), with a reason; [`current::stop_requested`](crate::env::current::stop_requested), [`StopToken::stop_requested`](crate::StopToken::stop_requested) |
//! | `cancelled().await`, `run_until_cancelled` | [`StopToken::stopped`](crate::StopToken::stopped), [`run_until_stopped`](crate::task::run_until_stopped) |
//! | `DropGuard`, clean-up in `Drop` | [`using`](crate::using), [`ensure`](crate::ensure), [`cleanups`](crate::cleanup::cleanups()), which are awaited |
//! | `ctrl_c` in a `select!`, then a `TaskTracker::wait` | nothing: `#[convoke::main]` asks the program to stop, and waits |
//!
//! ## Locks and channels
//!
//! | tokio | Convoke |
//! | --- | --- |
//! | `Mutex`, `lock_owned`, `try_lock`, `OwnedMutexGuard` | the same, [`sync::Mutex`](crate::sync::Mutex) |
//! | `RwLock`, `downgrade` | the same, [`sync::RwLock`](crate::sync::RwLock); the guards are [`ReadGuard`](crate::sync::ReadGuard) and [`WriteGuard`](crate::sync::WriteGuard) |
//! | `Semaphore`, `acquire_many`, `acquire_owned`, `add_permits` | the same, [`sync::Semaphore`](crate::sync::Semaphore); `available_permits` is [`available`](crate::sync::Semaphore::available), the permits are [`Permit`](crate::sync::Permit) and [`OwnedPermit`](crate::sync::OwnedPermit) |
//! | `Semaphore::close` | none, and `acquire` cannot fail: a task that waits is ended by its stop |
//! | `Barrier`, `BarrierWaitResult` | [`Barrier`](crate::sync::Barrier), [`Met`](crate::sync::Met) |
//! | `OnceCell`, `SetOnce` | both are [`sync::OnceCell`](crate::sync::OnceCell): [`get_or_init`](crate::sync::OnceCell::get_or_init), [`set`](crate::sync::OnceCell::set), [`wait`](crate::sync::OnceCell::wait) |
//! | `Notify`, `notify_one`, `notify_waiters` | the same, [`sync::Notify`](crate::sync::Notify); a flag that stays set is an [`Event`](crate::sync::Event) |
//! | `mpsc`, `mpsc::unbounded_channel` | [`mpsc`](crate::sync::mpsc), [`mpsc::unbounded`](crate::sync::mpsc::unbounded); with several receivers, [`mpmc`](crate::sync::mpmc) |
//! | `Sender::capacity`, `max_capacity` | [`capacity`](crate::sync::mpsc::Sender::capacity) is `max_capacity`; see also [`len`](crate::sync::mpsc::Sender::len) |
//! | `SendError`, `TrySendError`, `TryRecvError` | [`SendError`](crate::sync::mpsc::SendError), [`TrySendError`](crate::sync::mpsc::TrySendError), [`TryRecvError`](crate::sync::mpsc::TryRecvError) |
//! | `send_timeout` | `timeout(limit, sender.send(..))` |
//! | `reserve`, `try_reserve`, `reserve_owned`, `Permit` | the same, on [`Sender`](crate::sync::mpsc::Sender::reserve); [`SendPermit`](crate::sync::mpsc::SendPermit). `reserve_owned` borrows the sender, and its permit has a clone |
//! | `blocking_send`, `blocking_recv` | the same, on [all channels](crate::sync::mpsc::Sender::blocking_send) |
//! | `poll_recv`, `ReceiverStream`, `BroadcastStream`, `WatchStream` | none: each receiver is a `Stream` |
//! | `oneshot`, `receiver.await`, `Sender::closed` | the same, [`oneshot`](crate::sync::oneshot); the error is [`Closed`](crate::sync::oneshot::Closed); [`recv`](crate::sync::oneshot::Receiver::recv) keeps the receiver |
//! | `broadcast`, `RecvError::Lagged` | the same, [`broadcast`](crate::sync::broadcast); without losses, [`lossless_broadcast`](crate::sync::lossless_broadcast), whose `send` waits |
//! | `watch`, `changed`, `borrow_and_update`, `wait_for`, `mark_changed` | the same, [`watch`](crate::sync::watch::Receiver) |
//! | `send_modify`, `send_replace`, `send_if_modified` | [`modify`](crate::sync::watch::Sender::modify), [`replace`](crate::sync::watch::Sender::replace), [`modify_if`](crate::sync::watch::Sender::modify_if) |
//! | `receiver_count` | `receivers`, on [`broadcast`](crate::sync::broadcast::Sender::receivers) and [`watch`](crate::sync::watch::Sender::receivers) |
//!
//! ## Sockets, streams and signals
//!
//! | tokio | Convoke |
//! | --- | --- |
//! | `TcpListener`, `TcpStream`, `UdpSocket`, `UnixListener`, … | the same, in [`net`](crate::net), with `futures_io`'s traits and methods of their own |
//! | `readable`, `try_read`, `try_io`, `into_split`, `reunite`, `peek` | the same, on [`SocketStream`](crate::net::SocketStream) |
//! | `set_nodelay`, `set_keepalive`, `set_ttl`, `set_linger`, … | the same, on [streams](crate::net::SocketStream::set_nodelay), listeners and datagram sockets; as values, [`set_option`](crate::net::SocketStream::set_option) with a [`SocketOption`](crate::net::SocketOption) |
//! | `poll_recv_from`, `poll_send_to`, `join_multicast_v4` | the same, on [`DatagramSocket`](crate::net::DatagramSocket::poll_recv_from) |
//! | `AsyncReadExt::read_buf` | [`read_buf`](crate::net::SocketStream::read_buf), into the spare capacity of a vector |
//! | `peer_cred`, `UCred` | [`PeerCredentials`](crate::net::PeerCredentials) |
//! | `TcpSocket`, `UnixSocket` | [`ListenOptions`](crate::net::ListenOptions), [`ConnectOptions`](crate::net::ConnectOptions), [`set_option`](crate::net::SocketStream::set_option); all else with `socket2`, by `from_std` and `AsFd` |
//! | `lookup_host`, `ToSocketAddrs` | [`net::resolve`](crate::net::resolve), [`ToAddress`](crate::net::ToAddress) |
//! | `io::unix::AsyncFd`, `unix::pipe` | [`net::AsyncFd`](crate::net::AsyncFd) |
//! | `io::copy`, `copy_bidirectional`, `duplex` | the same, in [`io`](crate::io); with a limit for idle connections, [`idle_timeout`](crate::io::Copy::idle_timeout) |
//! | `io::split` | [`AnyStream::split`](crate::io::AnyStream::split), for streams of any type |
//! | `AsyncReadExt`, `AsyncWriteExt` | [`read_exact`](crate::io::read_exact), [`write_all`](crate::io::write_all) and methods of streams; the rest is in `futures-lite` or `futures` |
//! | `BufReader`, `BufWriter`, `lines`, `take`, `chain`, `AsyncSeek`, `empty`, `sink` | those of `futures-lite` or `futures` |
//! | `signal::ctrl_c`, `signal::unix::signal`, `SignalKind` | [`signal::ctrl_c`](crate::signal::ctrl_c), [`signal::signals`](crate::signal::signals), [`Signal`](crate::signal::Signal) |
//!
//! ## What people add to tokio
//!
//! | by hand, or by another crate | Convoke |
//! | --- | --- |
//! | a loop that starts a task again when it fails | [`child().restart(schedule)`](crate::scope::Child::restart), with [`report`](crate::scope::Child::report), in every scope |
//! | an accept loop that forgets the errors of its clients | [`supervise`](crate::Scope::supervise), or [`serve`](crate::net::serve()) |
//! | `backoff`, `tokio-retry` | [`retry`](mod@crate::retry), with [`Backoff`](crate::retry::Backoff) |
//! | an error type for "cancelled" | none is needed; where a `Result` must say it, [`Stopped`](crate::Stopped), which `?` makes an `io::Error` |
//! | `Box<dyn AsyncRead + AsyncWrite>` | [`AnyStream`](crate::io::AnyStream) and its read-only, write-only and borrowed forms |
//! | `async-stream`, `genawaiter` | [`generator`](crate::task::generator()), [`sync_generator`](crate::task::sync_generator()) |
//! | turmoil, madsim | `#[convoke::test(sim)]`: the same program, without another build |
//!
//! ## What there is not
//!
//! | tokio | instead |
//! | --- | --- |
//! | dropping a `JoinHandle`, `detach_all` | none: nothing is detached. What is to outlive a function is a child of a scope further up |
//! | `fs`, `io::stdin`, `io::stdout` | `blocking(\|_\| std::fs::read(path))`; files are planned |
//! | `process` | `blocking(\|_\| command.output())` |
//! | `windows::named_pipe` | none |
//! | `block_in_place` | [`blocking`](crate::blocking()), or a part on the pool with [`run_on`](crate::run_on) |
//! | `coop::has_budget_remaining` | none: the budget only makes a task yield |
//! | `on_thread_start`, `RuntimeMetrics` | none |
//! | `read_owned`, `write_owned`, `Semaphore::forget_permits`, `merge`, `split` | none: `forget` is a method of a permit |
//! | `MappedMutexGuard`, `RwLockReadGuard::map`, `blocking_lock`, `blocking_read` | none: borrow from the guard; in [`blocking`](crate::blocking()), `inside.block_on(mutex.lock_owned())` |
//! | `recv_many`, `reserve_many` | a `recv`, and then `try_recv` until it is empty; `reserve` in a loop |
//! | `WeakSender`, `same_channel`, `strong_count` | none |
//! | `mpsc::Sender::closed` | none: the sender learns it from `send`; [`watch`](crate::sync::watch::Sender::closed) and [`oneshot`](crate::sync::oneshot::Sender::closed) have it |
//! | `Notify::notify_last`, `Notified::enable` | none; `enable` is not needed, see [below](#channels) |
//! | `LocalKey::sync_scope`, `with` | none; [`current::local`](crate::env::current::local) clones the value, and works in plain functions too |
//! | `ReusableBoxFuture`, `PollSender`, `PollSemaphore` | none: store the future, or a child with its `Handle` |
//! | `codec`, and crates that need tokio's context (sqlx, reqwest with its JSON and cookies) | `tokio_guest(\|\| future)` of the crate `convoke-tokio`; for streams, its `CompatExt::compat` |
//!
//! # A stop is not an error, and not a drop
//!
//! Nothing is cancelled by dropping it. Work is asked to stop by a `timeout`, by a `race` that it has lost, or by Ctrl-C. It ends at
//! the `await` where it is: its frames are dropped from the inside out, each clean-up on the way is awaited, and the function is
//! not resumed. So there is nothing to check after an `await`, and no list of what is "cancel safe": a stopped
//! `recv`, `read`, `accept`, `lock` or `acquire` has taken nothing.
//!
//! - Work that must not be left half-done goes into a [`shield`](crate::shield); the stop takes effect after it.
//! - A function that asks a child to stop and then awaits it ends stopped, too, as it has no value to go on with; unless it says
//!   [`catch_stopped`](crate::catch_stopped), or awaits the [`outcome`](crate::scope::Handle::outcome).
//! - A stop is not instant. `abort` returns, and the task is dropped at its next `await`; here the work is awaited, with its
//!   clean-up, which has a [grace period](crate::cleanup::GRACE).
//!
//! # A stop holds
//!
//! A request is level-triggered, as in Trio, and not an event that is delivered once. After a stop was caught, the next `await` that
//! waits is stopped again, until the task, or the region that was asked, has ended:
//!
//! ```
//! use std::time::Duration;
//! use convoke::prelude::*;
//! use convoke::task::forever;
//!
//! let ended = block_on(async {
//!     let stubborn = async {
//!         let waits = async { forever().await };
//!         let first: Result<(), Stopped> = catch_stopped(waits).await;
//!         assert!(first.is_err());
//!         shield(sleep(Duration::from_millis(1))).await; // Is not stopped.
//!         sleep(Duration::from_secs(3600)).await; // Is stopped, again.
//!         unreachable!()
//!     };
//!     timeout(Duration::from_millis(1), stubborn).await
//! });
//! assert!(ended.unwrap().is_err());
//! ```
//!
//! So a loop that ignores errors cannot outlive its stop. What has to wait after it is in a [`shield`](crate::shield), or, better, a
//! clean-up: [`using`](crate::using), [`ensure`](crate::ensure). A `CancellationToken` is level-triggered, too, but only where the
//! program asks it; `abort` needs no asking, but cannot wait.
//!
//! # Futures of other crates
//!
//! Futures of other crates do not notice a stop. `async_channel`'s `recv`, or `std::future::pending`, is dropped where it waits, as tokio would do:
//! there the rules of "cancel safe" still apply. A [`shield`](crate::shield) keeps it, and
//! [`ForeignFutures`](crate::env::ForeignFutures) changes that for everything below. TLS or HTTP of other crates
//! over Convoke's sockets does notice it.
//!
//! The other way round, a foreign `select!` drops the branches that it does not need, and with them futures of ours: destructors run,
//! operations that were started are still awaited at the end of the task, and a clean-up that was skipped is
//! [reported](crate::cleanup::set_cleanup_hook). Use [`race`](crate::race), which awaits them.
//!
//! # Channels
//!
//! They have tokio's names and semantics, but for these:
//!
//! - A stop loses nothing. A stopped `recv`, `reserve`, `notified` or `next` has taken nothing, and what it was about to get goes to
//!   the next waiter. In tokio that holds for most calls when they are dropped; the documentation says for which.
//! - [`mpsc::Receiver::close`](crate::sync::mpsc::Receiver::close) takes `&self`, and either half can close. A permit that was
//!   reserved before still sends, and `recv` waits for it.
//! - Messages of a [`broadcast`](crate::sync::broadcast) are dropped when all receivers have received them, and the last one gets the
//!   message without a clone. Its capacity is exact, and not rounded up to a power of two, so that `Lagged` may come earlier.
//! - A clone of a [`broadcast::Receiver`](crate::sync::broadcast::Receiver) receives what the original has not received yet; tokio's
//!   cannot be cloned, and [`resubscribe`](crate::sync::broadcast::Receiver::resubscribe) starts at the end in both.
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
//!         // Idle connections are closed after a minute, and by a stop of the program.
//!         let read = timeout(Duration::from_secs(60), stream.read(&mut request));
//!         let length = match read.await? {
//!             Ok(0) => return Ok(()),
//!             read => read?,
//!         };
//!         // A request that was read is answered, within five seconds, and within three
//!         // after a stop request.
//!         let answer = answer(&stream, &request[..length]);
//!         let answer = timeout(Duration::from_secs(5), answer);
//!         shield(answer).grace(Duration::from_secs(3)).await??;
//!     }
//! }
//!
//! async fn answer(stream: &TcpStream, request: &[u8]) -> io::Result<()> {
//!     sleep(Duration::from_millis(10)).await; // Ask a database, and so on.
//!     stream.write_all(request).await
//! }
//!
//! // After 20 seconds, or at a second signal, the process exits and tells what still ran.
//! #[convoke::main(grace_seconds = 20)]
//! async fn main() -> io::Result<()> {
//!     serve("127.0.0.1:7000", client).connections(1000).await
//! }
//! ```
//!
//! # A loop around `select!`
//!
//! [`select!`](crate::select) has tokio's syntax, without guards, `else` and patterns that can fail: write `received = messages.recv()
//! => match received { … }`. When an expression runs, the other branches have
//! ended. The branch for the shutdown is needed only where there is something left to do: the stop comes by itself, and ends
//! the other branches; the token hears of it, and the loop goes on.
//! **The stop still holds in that branch**: an `await` there ends the task. Shield what has to wait: `_ = stop.stopped() => {
//! shield(flush(sum)).await; return sum; }`.
//!
//! ```
//! use std::time::Duration;
//! use convoke::env::current;
//! use convoke::prelude::*;
//! use convoke::sync::mpsc;
//! use convoke::time::interval;
//!
//! async fn collect(mut messages: mpsc::Receiver<u32>) -> Vec<u32> {
//!     let mut ticks = interval(Duration::from_millis(1));
//!     let stop = current::stop_token();
//!     let mut all = Vec::new();
//!     loop {
//!         convoke::select! {
//!             received = messages.recv() => match received {
//!                 Some(message) => all.push(message),
//!                 None => return all,
//!             },
//!             _ = ticks.tick() => println!("{} so far", all.len()),
//!             _ = stop.stopped() => {
//!                 messages.close(); // Later sends fail; sent messages are kept.
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
//! - If several branches are ready, the first in order always wins: put the branch first that must not starve.
//! - The losers are asked to stop, and awaited. **Work that goes on over several rounds is a child**: start it with
//!   `spawn_future`, and await `&mut handle` in the branch. A future that is pinned outside of the loop, as for `select!`, is
//!   stopped in the first round that it loses, and has no value any more.
//! - Branches that only run at the same time, and share nothing else, are children of a scope, with a loop each.
//!
//! # Where things run
//!
//! A runtime has one I/O context, a thread with its own sockets and timers, for each core, and a pool of threads beside them. No task
//! moves by itself: a child runs where its scope was opened, which for `main` is the first context. To use all cores, say so:
//! [`serve`](crate::net::serve()) for connections; for other work the contexts and the pool of
//! [`runtime::current`](crate::runtime::current()), with [`run_on`](crate::run_on) or [`child().on(..)`](crate::scope::Child::on);
//! [`blocking`](crate::blocking()) for functions that block. The chapter [`fairness_and_cores`](super::fairness_and_cores) has the
//! reasons.
