//! Adopt it one handler at a time: Convoke in a program that runs on tokio, and crates that need tokio in a program that runs on Convoke.
//!
//! Both doors are in the crate `convoke-tokio`, whose documentation has the whole of these programs, compiled and run.
//!
//! # A program that stays on tokio
//!
//! Put `run` around what one handler, or one spawned task, does. Nothing else changes: axum, the runtime and the other handlers stay.
//!
//! ```ignore
//! async fn order(State(database): State<Pool>) -> Result<String, StatusCode> {
//!     run(async move {
//!         // If the client hangs up, tokio drops this handler. The transaction is
//!         // rolled back all the same, and awaited.
//!         let transaction = Transaction::begin(&database).await?;
//!         using(transaction, async |tx| place_order(&tx).await).await
//!     })
//!     .named("order")
//!     .await
//!     .map_err(|_stopped| StatusCode::SERVICE_UNAVAILABLE)?
//! }
//! ```
//!
//! | step | what you gain | what it takes |
//! | --- | --- | --- |
//! | `run` around a handler | [`using`](crate::using()), [`scope`](crate::scope()), [`timeout`](crate::timeout()) that await their clean-up; the handler in [`tree`](crate::inspect::tree()) | one line |
//! | `finish` before the runtime is dropped | clean-up of dropped handlers is awaited at shutdown, and what is left is named | one line in `main` |
//! | `scope_on(&Workers, …)` | children in parallel, on tokio's threads | a value that is shared |
//! | `join(launch(&executor)…)` in any task of tokio | what runs on another executor is awaited without blocking; senders are awaited inside `run` | |
//! | `#[tokio::test(start_paused = true)]` | tokio's paused clock drives Convoke's sleeps, timeouts and deadlines, too | nothing |
//! | `with_local(&IO, context.executor(), …)` inside `run` | Convoke's sockets and the client of `convoke-http` in a handler | a thread that runs an [`IoContext`](crate::driver::IoContext) |
//! | `#[convoke::main]`, `convoke-http` | the drain, limits, a task per request, the simulator | the program moves; its handlers need not |
//!
//! The cost in instructions, beside that of tokio's own way (scenarios `tokio_door_…` of the bench):
//!
//! | | Convoke inside tokio | tokio |
//! | --- | --- | --- |
//! | a task of a scope, and its handle | 1,160 | `tokio::spawn` 2,210 |
//! | one of 100 children of a scope | 320 | `JoinSet` 2,640 |
//! | a task on `Workers`, of 1,000 at once | 580 | `tokio::spawn` 2,360 |
//! | `run` itself, once for each handler; each thread keeps up to 16 loops for the next | 4,470 | `tokio::spawn` 2,230 |
//!
//! # A program on Convoke
//!
//! Most crates that work on bytes need no runtime: give them a stream of Convoke's. `compat()` of `convoke-tokio` gives it the traits of tokio.
//!
//! | crate | how |
//! | --- | --- |
//! | tokio-postgres | `convoke-postgres`: a pool whose connections are children of its scope |
//! | hyper, axum, tower | `convoke-http` |
//! | redis | `MultiplexedConnection::new_with_config(.., stream.compat(), config)` without a response timeout; its driver is a child, shielded |
//! | quinn | `convoke-runtimes`: `Quic::run`, with quinn's endpoints over Convoke's sockets |
//! | hickory-resolver, over UDP and TCP | `convoke-runtimes`: `Dns::run` |
//! | tonic (without `transport`), tungstenite | over `convoke-http` |
//! | sqlx, reqwest, async-nats, bb8, tonic with its `transport`, `axum::serve` with its WebSocket, anything with `tokio::spawn` inside | `tokio_guest(\|\| async { … })` |
//!
//! ```ignore
//! let query = || async { sqlx::query("SELECT 1").fetch_all(&pool).await };
//! let rows = tokio_guest(query).await?;
//! ```
//!
//! A guest is made, polled and dropped inside a tokio runtime, which is a service of the program. A stop drops the guest where it waits, as
//! tokio would; put a [`shield`](crate::shield()) around what must not be cut. Tasks that a guest has spawned are waited for when the program ends,
//! for a grace period; then their number is reported, and the lines whose guests have spawned tasks: tokio has no names for them. bb8, for example, starts one that never ends: give the runtime a short grace period.
