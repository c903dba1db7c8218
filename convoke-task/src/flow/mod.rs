//! What an `async fn` says about its own course: where it runs, where it may be stopped, what it does about that.

mod catch_stopped;
mod checkpoint;
pub mod current;
mod forever;
mod no_return;
mod reschedule;
mod run_on;
mod stoppable;
mod stopped;
mod with_local;

pub use catch_stopped::{CatchStopped, Stopped, catch_stopped};
pub use checkpoint::{Checkpoint, checkpoint};
pub use forever::{Forever, forever};
pub use no_return::{NoReturn, Returns};
pub use reschedule::{NotSend, Reschedule, reschedule};
pub use run_on::{RunOn, run_on};
pub use stoppable::{Stoppable, stoppable};
pub use stopped::{EndStopped, stopped};
pub use with_local::{WithLocal, with_local};
