//! Tools to put a sender through its paces: start it by hand, complete it by hand, look at what it did.
//!
//! | file | what is in it |
//! | --- | --- |
//! | `connected.rs` | a sender that is started by hand, and its outcome |
//! | `doors.rs` | a sender for each of the four doors |
//! | `gate.rs`, `race.rs` | work that is completed by hand, and by another thread while it is being started |
//! | `by_hand.rs` | an executor whose queue is run by hand |
//! | `drop_count.rs` | counts drops |
//! | `frame_allocator_contract/` | the suite for frame allocators |

mod by_hand;
mod connected;
mod doors;
mod drop_count;
pub mod frame_allocator_contract;
mod gate;
mod race;

pub use by_hand::ByHand;
pub use connected::{Connected, Keep, Running, stopped_env};
pub use doors::{Ends, all_doors, completes_of};
pub use drop_count::{DropCount, DropToken};
pub use gate::{AtGate, Gate, GateOperation};
pub use race::race_a_gate;
