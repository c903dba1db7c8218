//! Async RAII: clean-up that is awaited on every exit of a body, by whichever of the four doors it leaves.
//!
//! | file | what is in it |
//! | --- | --- |
//! | `using.rs` `ensure.rs` `cleanups.rs` | the three ways to say it |
//! | `async_close.rs` `exit.rs` | what a resource says about its end, and what it is told |
//! | `future.rs` | the future of all three: first the body, then the clean-up |
//! | `closing.rs` `grace.rs` | a clean-up on its way: shielded, caught, and for how long |
//! | `lent.rs` `stack.rs` | resources while the body has them |
//! | `cleanup_output.rs` | what clean-ups return; how that goes together with what bodies do is said by [`CleanupFailure`] |
//! | `problem.rs` | clean-up that was skipped, or fails where nobody can be told |
//! | `reported.rs` | clean-up by itself, of which nobody can be told |

#[cfg(doc)]
use convoke_core::CleanupFailure;

mod async_close;
mod cleanup_output;
mod cleanups;
mod closing;
mod ensure;
mod exit;
mod future;
mod grace;
mod lent;
mod problem;
mod reported;
mod stack;
mod using;

pub use async_close::AsyncClose;
pub use cleanup_output::{CleanupError, CleanupOutput};
pub use cleanups::{Cleanups, cleanups};
pub use ensure::ensure;
pub use exit::Exit;
pub use future::Using;
pub use grace::{DEFAULT_GRACE, GRACE, GRACE_OVER};
pub use lent::Lent;
#[cfg(feature = "testing")]
pub use problem::skipping_clean_up;
pub use problem::{CleanupProblem, ProblemKind, set_cleanup_hook};
pub(crate) use reported::{report_problem, reported};
pub use stack::FirstFailure;
pub use using::using;
