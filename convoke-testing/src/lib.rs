//! Tools to test with: test bodies in virtual time, stops at every point, and contract suites.
//!
//! | module | contents |
//! | --- | --- |
//! | [`run()`], [`Play`], [`Stage`] | a test body on a loop and a clock of its own, which jumps; what hangs, and what was left behind |
//! | [`wait_all_blocked()`], [`Sequencer`], [`Trace`] | when all wait; order that is forced, and order that is written down |
//! | [`explore_stops()`], [`explore_inner_stops()`] | a stop at every point, of all of a program or of one part |
//! | [`executor_contract`], [`lock_contract`], [`channel_contract`] | suites for types of one's own |
//! | [`Clockwork`], [`Latch`], [`runnable()`] | an executor and a clock that are moved by hand; waiting without a sleep; work from a closure |

pub mod channel_contract;
mod clock;
mod clockwork;
pub mod executor_contract;
mod explore_stops;
mod latch;
pub mod lock_contract;
mod play;
mod runnable;
mod sequencer;
mod stage;
mod trace;
mod wait_all_blocked;
mod woken;
#[doc(hidden)]
pub mod workshop;

pub use clockwork::Clockwork;
pub use convoke_core::testing::{ByHand, DropCount, DropToken, frame_allocator_contract};
pub use convoke_sender::testing::*;
pub use explore_stops::{
    Asked, Ended, Exploration, MOST_INNER_STOPS, MustDrop, Part, Probe, StopRun, explore_inner_stops,
    explore_inner_stops_with, explore_stops, explore_stops_with, replay_inner_stop, replay_stop,
};
pub use latch::Latch;
pub use play::{Play, run};
pub use runnable::runnable;
pub use sequencer::{At, Sequencer, Turn};
pub use stage::{Stage, elapsed};
pub use trace::Trace;
pub use wait_all_blocked::{WaitAllBlocked, wait_all_blocked};
