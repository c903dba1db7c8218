//! The names that most applications need, at most 25: `use convoke::prelude::*;`. `ThreadPool` is among them with the feature `pool`.

pub use convoke_core::{Never, Outcome, StopReason, StopSource};
#[cfg(feature = "pool")]
pub use convoke_exec::ThreadPool;
pub use convoke_exec::time::sleep;
pub use convoke_task::blocking::blocking;
pub use convoke_task::cleanup::{AsyncClose, Exit, ensure, using};
pub use convoke_task::launch::{block_on, launch};
pub use convoke_task::limits::{shield, timeout};
pub use convoke_task::local_scope::local_scope;
pub use convoke_task::scope::{Scope, scope};
pub use convoke_task::select;
pub use convoke_task::together::{join, race, try_join};
pub use convoke_task::{Stopped, catch_stopped, checkpoint};
