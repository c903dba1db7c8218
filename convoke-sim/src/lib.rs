//! The simulated driver of Convoke, and the first one to read: a network of hosts in memory, with virtual time, a scheduler that
//! follows a seed, and faults. Programs run on it unchanged; a run that fails can be run again, exactly.
//!
//! | room | what is in it |
//! | --- | --- |
//! | [`Sim`] | a simulation, as a test sees it |
//! | [`explore_seeds`], [`explore_stops`], [`explore_faults`] | many runs of one program, each disturbed in another way |
//! | [`SimDriver`] | the driver by itself |
//! | `executor.rs`, `driver.rs`, `source.rs` | what a host's program sees: its executor, its kernel, its sockets |
//! | `world/` | what is behind them: hosts, links, packets, sockets |
//! | `clock.rs`, `random.rs` | clocks that differ; chance that follows a seed |
//!
//! # What is simulated
//!
//! - *Time* stands still while anybody has something to do. When all wait it jumps: to the next timer, packet or action.
//! - *Scheduling*: of all tasks that can run, one is chosen by the seed, and runs to its next wait.
//! - *Hosts* have names, by which they are found, and the addresses `10.0.0.1`, `10.0.0.2`, … (`fd00::1`, …) in the order in which they were
//!   named. Each has ports, Unix paths (in memory; a path is free again when its socket is closed), limits and a clock of its own.
//! - *Streams* bring their bytes in order. A packet that is lost, or meets a partition or a crashed host, is sent again after 0.2 s, 0.4 s, …;
//!   after ten times, about three minutes, the connection has timed out; an attempt to connect after one minute. A window bounds what the other end has not read. What arrives at a host that does not
//!   know the connection is answered by a reset. Keep-alive finds out about peers that are gone.
//! - *Datagrams* are sent once: they are lost, doubled, and overtake each other.
//! - *Inside of a host* all arrives at once, and nothing is lost.
//!
//! Not simulated are files, processes, signals, threads: what a program does there it really does.
//!
//! Programs use the facade crate `convoke` (feature `sim`), which re-exports all of this as `convoke::sim`.

mod clock;
mod disk;
mod driver;
mod explore;
mod life;
mod note;
mod random;
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
