//! Simulations: a network of hosts in memory, with virtual time, a scheduler that follows a seed, and faults.
//! Programs run on it unchanged, and a run that fails can be repeated exactly. This is the driver to read
//! first.
//!
//! A [`Sim`] has hosts, and each host has a program. One thread runs all of them, one piece of work at a
//! time. Each start of a program is a *host run*, with its own loop, driver and timers; a host run ends when
//! the program returns or the host crashes. Everything that the hosts share is the *world*, behind one lock.
//! Drivers and sockets call into the world; the world never calls out while it holds the lock.
//!
//! | module | contents |
//! | --- | --- |
//! | [`Sim`] | a simulation, as a test sees it |
//! | [`explore_seeds`], [`explore_host_stops`], [`explore_faults`] | many runs of one program, each disturbed in another way |
//! | [`run_twice`] | a check that a seed always produces the same run |
//! | [`Disk`] | the state of a host that survives a crash |
//! | [`note()`] | a line that a program writes into the trace |
//! | [`SimDriver`] | the driver alone |
//! | `host_run.rs`, `driver.rs`, `source.rs` | one run of a host: its loop, its kernel, its sockets |
//! | `world/` | the shared state: hosts, links, packets, sockets |
//! | `clock.rs` | host clocks that differ from the simulated time |
//!
//! # What is simulated
//!
//! - *Time* stands still while any task can run. When all tasks wait, it jumps to the next timer, packet or
//!   action.
//! - *Scheduling*: the seed chooses one of the hosts with runnable tasks, and then one of these tasks, which
//!   runs to its next wait.
//! - *Hosts* have names, by which they are found, and the addresses `10.0.0.1`, `10.0.0.2`, … (`fd00::1`, …)
//!   in the order in which they were first named. Each has its own ports, Unix paths (in memory; a path is
//!   free again when its socket is closed), limits and clock.
//! - *Streams* deliver their bytes in order. A packet that is lost, or that meets a partition or a crashed
//!   host, is sent again after 0.2 s, 0.4 s, …; after ten attempts, about three minutes, the connection times
//!   out. An attempt to connect times out after one minute. A receive window bounds the bytes that the other
//!   end has not read. A packet for an unknown connection is answered by a reset. Keep-alive detects dead
//!   peers, and so does a sender that waits for a crashed receiver to open its window.
//! - *Datagrams* are sent once. They can be lost, duplicated and reordered.
//! - *Inside a host* everything arrives at once, and nothing is lost.
//! - *Crashes* stop a host at once: see [`Sim::crash`]. The next run of the host finds only what is on its
//!   [`Disk`].
//! - *Clocks* of hosts can be ahead, behind, too fast or too slow, and jump while the host runs. A jump moves
//!   the monotonic time only forward ([`Sim::jump_clock`]); the time of day goes back, too
//!   ([`Sim::step_time_of_day_back`]). It starts on the first of January 2000, in UTC.
//! - *Randomness*: [`chance::random`](convoke_task::chance::random()) and the jitter of schedules follow the
//!   seed.
//!
//! Files, processes, threads, the clocks of the standard library and the order of a `HashMap` are not
//! simulated: programs use the real ones. [`run_twice`] detects whether that makes a difference.
//!
//! # When a run fails
//!
//! The message says what went wrong and when, what each task waited for, what happened last, and how to run
//! it again. It shows the last lines of the trace; and of the older ones the connections that broke, the
//! faults, and the starts and ends of programs, however much traffic there was in between:
//!
//! ```text
//! after 150ms of simulated time: an invariant does not hold (declared at
//! tests/queue.rs:65:80): job 3 is lost
//! the tasks at that moment:
//! `queue` (tests/queue.rs:57:23) waits at tests/queue.rs:20:36
//! `worker` (tests/queue.rs:58:33) waits at tests/queue.rs:40:31
//! what happened (25 more lines with `CONVOKE_TRACE=1`):
//!     0.000000s  queue starts
//!     0.000000s  worker starts
//!     0.111864s  worker crashes
//!     0.111864s  worker starts
//!               …
//!     0.116864s  worker:49155 → queue:5: connect
//!     …
//!     0.119842s  queue:5 → worker:49155: 1 bytes
//!     0.120431s  queue:5 → worker:49155: 1 bytes: arrived
//!     0.120431s  worker: works on job 3
//!     …
//! this was seed 23; `CONVOKE_SEED=23` or `Sim::new(23)` runs it again
//! ```
//!
//! A line without a remark is a packet that is sent. Later lines tell what becomes of it: `arrived`, `arrived
//! early` (before an earlier packet of its stream), `lost`, `sent again`, `dropped`.
//!
//! | environment variable | effect |
//! | --- | --- |
//! | `CONVOKE_SEED=23` | runs only this seed of [`explore_seeds`] and `#[convoke::test(sim, seeds = …)]` |
//! | `CONVOKE_POINT=7` | runs only this step or operation of [`explore_host_stops`] and [`explore_faults`] |
//! | `CONVOKE_TRACE=1` | prints each trace line when it happens, among the output of the programs |
//!
//! Programs use the facade crate `convoke` (feature `sim`), which re-exports all of this as `convoke::sim`.

#![cfg_attr(docsrs, feature(doc_cfg))]

mod clock;
mod disk;
mod driver;
mod explore;
mod host_run;
mod note;
mod sim;
mod source;
mod world;

pub use disk::Disk;
pub use driver::SimDriver;
pub use explore::{
    ExploredRun, SimExploration, explore_faults, explore_host_stops, explore_seeds, replay_fault,
    replay_host_stop, run_twice,
};
pub use note::note;
pub use sim::{
    Ending, HostBuilder, HostReport, STEP_LIMIT, Sim, SimFailure, SimReport, TIME_LIMIT, Verdict, simulate,
    simulate_replayed_by,
};
pub use world::{Fault, Link, TRACE_EVENTS, TRACE_LINES, TraceLine};

pub mod raw {
    //! The parts that are tested on their own.

    #[doc(hidden)]
    pub use crate::clock::{Clock, START_OF_DAY};
    #[doc(hidden)]
    pub use crate::explore::alone::chosen;
    #[doc(hidden)]
    pub use crate::world::hosts::addresses_of_hosts;
}
