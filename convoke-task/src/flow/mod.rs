//! Control flow of an `async fn`: where it runs, where it may be stopped, and what it does when it is.
//!
//! | file | contents |
//! | --- | --- |
//! | `checkpoint.rs`, `stoppable.rs` | points at which a function may be stopped |
//! | `stopped.rs`, `forever.rs` | ending as stopped, at once or when a stop is requested |
//! | `catch_stopped.rs` | turning a stop into a value |
//! | `run_until_stopped.rs` | a part that ends with a token of the program's own |
//! | `until_token.rs` | a body in a region that stops with a token, for `run_until_stopped` and `with` |
//! | `budget.rs` | how many awaits may be ready at once |
//! | `run_on.rs`, `reschedule.rs` | another executor, for one future or from here on |
//! | `with.rs`, `with_local.rs` | another environment for one future |
//! | `current.rs` | the environment of the running task, for plain functions |
//! | `no_return.rs` | the type `!` on stable Rust |

pub mod budget;
mod catch_stopped;
mod checkpoint;
pub mod current;
mod forever;
mod no_return;
mod reschedule;
mod run_on;
mod run_until_stopped;
mod stoppable;
mod stopped;
mod until_token;
mod with;
mod with_local;

pub use catch_stopped::{CatchStopped, Stopped, catch_stopped};
pub use checkpoint::{Checkpoint, checkpoint};
pub use forever::{Forever, forever};
pub use no_return::{NoReturn, Returns};
pub use reschedule::{NotSend, Reschedule, reschedule};
pub use run_on::{RunOn, run_on};
pub use run_until_stopped::{RunUntilStopped, run_until_stopped};
pub use stoppable::{Stoppable, stoppable};
pub use stopped::{EndStopped, stopped};
pub use with::{InEnv, InOwnTask, InThisTask, RunInEnv, With, with};
pub use with_local::{WithLocal, with_local};
