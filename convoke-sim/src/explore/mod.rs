//! Many runs of the same program: with other seeds, with a stop at each step, with a fault at each operation.
//!
//! Each run must end, keep its promises and leave nothing behind; the first that does not ends the exploration with a message
//! that says how to run it again. `seeds.rs`, `stops.rs` and `faults.rs` are the three ways, `exploration.rs` is the report.

mod exploration;
mod faults;
mod seeds;
mod stops;

pub use exploration::{Exploration, ExploredRun};
pub use faults::{explore_faults, replay_fault};
pub use seeds::explore_seeds;
pub use stops::{explore_stops, replay_stop};
