//! Tools to test a sender with: start it by hand, complete it by hand, inspect what it did.
//!
//! | file | contents |
//! | --- | --- |
//! | `connected.rs` | a sender that is started by hand, and its outcome |
//! | `doors.rs` | a sender for each of the four doors |
//! | `gate.rs`, `race.rs` | work that is completed by hand, and by another thread while it is being started |

mod connected;
mod doors;
mod gate;
mod race;

pub use connected::{Connected, Keep, Running, stopped_env};
pub use convoke_core::testing::{ByHand, DropCount, DropToken};
pub use doors::{Ends, all_doors, completes_of};
pub use gate::{AtGate, Gate, GateOperation};
pub use race::race_a_gate;
