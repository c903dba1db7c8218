//! Explorations: many runs of the same program, with other seeds, with a stop at each step, or with a fault
//! at each operation.
//!
//! Each run must end, keep its promises and leave nothing open. The first run that fails ends the exploration
//! with a message that says how to repeat it.
//!
//! | file | contents |
//! | --- | --- |
//! | `seeds.rs`, `stops.rs`, `faults.rs` | the three kinds of exploration |
//! | `exploration.rs` | the result |
//! | `alone.rs` | the environment variables that select a single run |
//! | `twice.rs` | the check that a seed always produces the same run |

pub(crate) mod alone;
mod exploration;
mod faults;
mod seeds;
mod stops;
mod twice;

pub use exploration::{ExploredRun, SimExploration};
pub use faults::{explore_faults, replay_fault};
pub use seeds::explore_seeds;
pub use stops::{explore_host_stops, replay_host_stop};
pub use twice::run_twice;
