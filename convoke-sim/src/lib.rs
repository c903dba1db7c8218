//! The simulated driver of Convoke, and the first one to read: a network of hosts in memory, with virtual time, a scheduler that
//! follows a seed, and faults. Programs run on it unchanged; a run that fails can be run again, exactly.
//!
//! | room | what is in it |
//! | --- | --- |
//! | [`Sim`] | a simulation, as a test sees it |
//! | [`explore_seeds`], [`explore_stops`], [`explore_faults`] | many runs of one program, each disturbed in another way |
//! | [`run_twice`] | whether a seed makes the same run every time |
//! | [`Disk`] | what a host finds again after a crash |
//! | [`note()`] | what a program says in the trace |
//! | [`SimDriver`] | the driver by itself |
//! | `life.rs`, `driver.rs`, `source.rs` | what a host's program runs on in one of its lives: its loop, its kernel, its sockets |
//! | `world/` | what is behind them: hosts, links, packets, sockets |
//! | `clock.rs` | clocks that differ |
//!
//! # What is simulated
//!
//! - *Time* stands still while anybody has something to do. When all wait it jumps: to the next timer, packet or action.
//! - *Scheduling*: of all hosts with tasks that can run, one is chosen by the seed, and of these tasks one, which runs to its next wait.
//! - *Hosts* have names, by which they are found, and the addresses `10.0.0.1`, `10.0.0.2`, … (`fd00::1`, …) in the order in which they were
//!   named. Each has ports, Unix paths (in memory; a path is free again when its socket is closed), limits and a clock of its own.
//! - *Streams* bring their bytes in order. A packet that is lost, or meets a partition or a crashed host, is sent again after 0.2 s, 0.4 s, …;
//!   after ten times, about three minutes, the connection has timed out; an attempt to connect after one minute. A window bounds what the other end has not read. What arrives at a host that does not
//!   know the connection is answered by a reset. Keep-alive finds out about peers that are gone, and so does who waits
//!   for a crashed one to make room.
//! - *Datagrams* are sent once: they are lost, doubled, and overtake each other.
//! - *Inside of a host* all arrives at once, and nothing is lost.
//! - *Crashes* stop a host dead: see [`Sim::crash`]. What its next life finds again is what is on its [`Disk`].
//! - *Chance*: what programs draw from [`chance::random`](convoke_task::chance::random()), and the jitter of schedules, follows the seed.
//!
//! Not simulated are files, processes, threads, the system's time of day, and the order of a `HashMap`: what a program does there it
//! really does. [`run_twice`] finds out if that makes a difference.
//!
//! # When a run fails
//!
//! The message says what was wrong, at what time, what all tasks were waiting for, what happened last, and how to run it again:
//!
//! ```text
//! after 150ms of simulated time: an invariant does not hold (said at tests/queue.rs:65:80): job 3 is lost
//! the tasks at that moment:
//! `queue` (tests/queue.rs:57:23) waits at tests/queue.rs:20:36
//! `worker` (tests/queue.rs:58:33) waits at tests/queue.rs:40:31
//! what happened (25 lines more are printed by `CONVOKE_TRACE=1`):
//!     0.000000s  queue starts
//!     0.000000s  worker starts
//!     0.111864s  worker crashes
//!     0.111864s  worker starts
//!               …
//!     0.116864s  worker:49155 → queue:5: connect
//!     0.119842s  queue:5 → worker:49155: 1 bytes
//!     0.120431s  worker: works on job 3
//!     …
//! this was seed 23; `CONVOKE_SEED=23` or `Sim::new(23)` runs it again
//! ```
//!
//! | in the environment | |
//! | --- | --- |
//! | `CONVOKE_SEED=23` | only this seed, of [`explore_seeds`] and of `#[convoke::test(sim, seeds = …)]` |
//! | `CONVOKE_POINT=7` | only this step or operation, of [`explore_stops`] and [`explore_faults`] |
//! | `CONVOKE_TRACE=1` | all that happens is printed when it does, among what the programs print |
//!
//! Programs use the facade crate `convoke` (feature `sim`), which re-exports all of this as `convoke::sim`.

mod clock;
mod disk;
mod driver;
mod explore;
mod life;
mod note;
mod sim;
mod source;
mod world;

pub use disk::Disk;
pub use driver::SimDriver;
pub use explore::{
    Exploration, ExploredRun, explore_faults, explore_seeds, explore_stops, replay_fault, replay_stop,
    run_twice,
};
pub use note::note;
pub use sim::{
    Ending, Failure, HostBuilder, HostReport, Report, STEP_LIMIT, Sim, TIME_LIMIT, Verdict, simulate,
    simulate_replayed_by,
};
pub use world::{Fault, Link, TRACE_LINES, TraceLine};
