//! How errors show and combine: what an `await` of fallible work yields, which error a clean-up may have beside the body's, and
//! which errors turn into which.
//!
//! The traits distinguish [`Never`](crate::Never) from all other error types, which only the crate that defines it can do.

mod await_error;
mod body_output;
mod cleanup_failure;
mod fails_as;

pub use await_error::AwaitError;
pub use body_output::BodyOutput;
pub use cleanup_failure::CleanupFailure;
pub use fails_as::FailsAs;
