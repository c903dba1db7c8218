//! Many runs of the same program: with other seeds, with a stop at each step, with a fault at each operation.
//!
//! Each run must end, keep its promises and leave nothing behind; the first that does not ends the exploration with a message
//! that says how to run it again. `seeds.rs`, `stops.rs` and `faults.rs` are the three ways, `exploration.rs` is the report;
//! `alone.rs` is what the environment asks to be run alone, `twice.rs` whether a seed makes the same run every time.

mod alone;
mod exploration;
mod faults;
mod seeds;
mod stops;
mod twice;

pub use exploration::{Exploration, ExploredRun};
pub use faults::{explore_faults, replay_fault};
pub use seeds::explore_seeds;
pub use stops::{explore_stops, replay_stop};
pub use twice::run_twice;
