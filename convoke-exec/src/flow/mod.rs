//! What an `async fn` says about its own course: where it runs, where it may be stopped, what it does about that.

mod catch_stopped;
mod checkpoint;
pub mod current;
mod reschedule;
mod run_on;
mod stopped;
mod with_local;

pub use catch_stopped::{CatchStopped, Stopped, catch_stopped};
pub use checkpoint::{Checkpoint, checkpoint};
pub use reschedule::{NotSend, Reschedule, reschedule};
pub use run_on::{RunOn, run_on};
pub use stopped::{StoppedForever, stopped};
pub use with_local::{WithLocal, with_local};
