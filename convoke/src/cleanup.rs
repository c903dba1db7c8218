//! Clean-up that is awaited on every exit: by return, by `?`, by a stop and by a panic.
//!
//! Use [`using()`] for a resource that is closed by awaiting, [`ensure()`] for a clean-up that is a closure, and [`cleanups()`] for
//! a list of them that grows while the body runs.

#[doc(inline)]
pub use convoke_core::{CleanupFailure, FailsAs};
#[doc(inline)]
pub use convoke_task::cleanup::*;
