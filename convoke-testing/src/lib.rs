//! Testing tools: test bodies in virtual time, stops at every point, and contract suites.
//!
//! A test body runs on a [`Stage`]: a loop that the test's thread drives step by step, and a clock that jumps
//! to the next timer when nothing is left to do. Explorations run a program many times on such a stage, and
//! inject a stop at another step each time. Contract suites run a type of your own through all of this.
//!
//! | module | contents |
//! | --- | --- |
//! | [`run()`], [`Play`], [`Stage`] | a test body on its own loop and clock; hangs and leaks are reported |
//! | [`wait_all_blocked()`], [`Sequencer`], [`Trace`] | waiting for idleness, forcing an order, recording an order |
//! | [`explore_stops()`], [`explore_inner_stops()`] | a stop at every step, of the whole program or of one part |
//! | [`executor_contract`], [`lock_contract`], [`channel_contract`] | contract suites for your own types |
//! | [`Clockwork`], [`Latch`], [`runnable()`] | an executor and clock moved by hand; waiting without a sleep; work from a closure |

#![cfg_attr(docsrs, feature(doc_cfg))]

mod blocked;
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
