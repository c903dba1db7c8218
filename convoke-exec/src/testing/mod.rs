//! Tools to put an executor through its paces, and to test work that waits.

mod clockwork;
pub mod executor_contract;
mod explore_stops;
mod latch;
mod runnable;

pub use clockwork::Clockwork;
pub use explore_stops::{
    Asked, Ended, Exploration, MustDrop, Probe, StopRun, explore_stops, explore_stops_with, replay_stop,
};
pub use latch::Latch;
pub use runnable::runnable;
