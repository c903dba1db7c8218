//! The second floor of Convoke: where work runs.
//!
//! | room | what is in it |
//! | --- | --- |
//! | [`sync_wait()`] | starts work and waits for its outcome on the calling thread |
//! | [`RunLoop`] | a queue and the thread that runs it |
//!
//! Programs use the facade crate `convoke`, which re-exports all of this.

mod run_loop;
mod sync_wait;

pub use run_loop::{RunLoop, RunLoopExecutor};
pub use sync_wait::{sync_wait, sync_wait_with};
