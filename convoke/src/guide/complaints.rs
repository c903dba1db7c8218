//! Complaints about async Rust that are open today, each with a program that shows what becomes of it here. All of them run in the tests,
//! and assert what they print.
//!
//! | complaint | where | program | what it prints |
//! | --- | --- | --- | --- |
//! | A stopped `begin` leaves its connection inside a transaction, and the pool lends it to the next request | sqlx#4393 | `connection_pool` | stopped after each of its steps, the transaction is rolled back, and the pool stays `clean` |
//! | A TLS stream that is dropped sends no close_notify | tokio-rs/tls#157 | `close_notify` | by return, error, panic and timeout the client reads the end of the message; with a stream that is dropped, an error |
//! | A graceful shutdown waits for upgraded connections for ever, or forgets them | axum#3003 | `upgrades_drain` | `drained after 99ms, of a deadline of 10s`; each connection has said good-bye |
//! | A future that holds its place at a lock is not polled: the task hangs, silently | RFD 609 | `futurelock` | `futurelock: …` with the task and both lines; with `race` there is none |
//! | A task that computes holds its thread, and with it the tasks behind it; nothing tells which | tokio#4730 | `busy_task` | ``stall: `busy` (busy_task.rs:37) has held its executor …``; `100 tasks behind it have ended before it` |
//! | A name lookup that does not return delays the end of the program | tokio#5338 | `pending_lookup` | `the runtime has ended after 51ms, and the lookup has not` |
//! | Where does it hang? | tokio#6844 | `tree_by_signal` | at SIGUSR1 the tree of all tasks, with the line where each waits |
//! | A client hangs up, and the clean-up of its handler does not happen | hyper and axum drop the handler | `hang_up` | `ROLLBACK: the body was stopped …` |
//! | The same, in a program that stays on tokio | the same | `adopt` | the rollback of a handler that tokio has dropped |
//!
//! ```text
//! # and so for connection_pool, close_notify, futurelock, busy_task, tree_by_signal
//! cargo run -p convoke --features full --example pending_lookup
//! cargo run -p convoke-http --example hang_up                      # and upgrades_drain
//! cargo run -p convoke-tokio --example adopt
//! ```
//!
//! Against a real PostgreSQL, `cargo xtask test --only services` stops a transaction at every await, and asks the server whether a
//! connection was left in one.
