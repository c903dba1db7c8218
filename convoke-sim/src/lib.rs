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
//! Programs use the facade crate `convoke` (feature `sim`), which re-exports all of this as `convoke::sim`.

mod clock;
mod driver;
mod executor;
mod explore;
mod random;
mod sim;
mod source;
mod world;

pub use driver::SimDriver;
pub use explore::{
    Exploration, ExploredRun, explore_faults, explore_seeds, explore_stops, replay_fault, replay_stop,
};
pub use sim::{
    Ending, Failure, HostBuilder, HostReport, Report, STEP_LIMIT, Sim, TIME_LIMIT, Verdict, simulate,
};
pub use world::{Fault, Link, TRACE_LINES, TraceLine};
