//! Tools to test senders: start one by hand, complete it by hand, inspect what it did.
//!
//! [`Connected`] connects a sender on the thread of the test; `start` returns a [`Running`], which fails the
//! test if it is dropped before it has completed. A [`Gate`] makes senders that the test completes, from any
//! thread.
//!
//! | file | contents |
//! | --- | --- |
//! | `connected.rs` | a sender that is started by hand, and its outcome |
//! | `doors.rs` | a sender for each of the four kinds of outcome |
//! | `gate.rs`, `race.rs` | work that is completed by hand, and by another thread while it is being started |

mod connected;
mod doors;
mod gate;
mod race;

pub use connected::{Connected, Keep, Running, stopped_env};
pub use convoke_core::testing::{ByHand, DropCount, DropToken};
pub use doors::{Ends, all_outcomes, completes_of};
pub use gate::{AtGate, Gate, GateOperation};
pub use race::race_a_gate;
