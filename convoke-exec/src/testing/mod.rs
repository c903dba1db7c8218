//! Tools to put an executor through its paces, and to test work that waits.

pub mod channel_contract;
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

pub use clockwork::Clockwork;
pub(crate) use explore_stops::Explored;
pub use explore_stops::{
    Asked, Ended, Exploration, MOST_INNER_STOPS, MustDrop, Part, Probe, StopRun, explore_inner_stops,
    explore_inner_stops_with, explore_stops, explore_stops_with, replay_inner_stop, replay_stop,
};
pub use latch::Latch;
pub use play::{Play, run};
pub use runnable::runnable;
pub use sequencer::{At, Sequencer, Turn};
pub use stage::{Stage, elapsed, now};
pub use trace::Trace;
pub use wait_all_blocked::{WaitAllBlocked, wait_all_blocked};
