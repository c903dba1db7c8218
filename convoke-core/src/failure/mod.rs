//! How errors appear and combine: what an `await` of fallible work returns, how the error of a clean-up
//! combines with that of the body, and which errors convert into which.
//!
//! The traits distinguish [`Never`](crate::Never) from all other error types, which only the crate that
//! defines it can do.

mod await_error;
mod body_output;
mod cleanup_failure;
mod fails_as;

pub use await_error::AwaitError;
pub use body_output::BodyOutput;
pub use cleanup_failure::CleanupFailure;
pub use fails_as::FailsAs;
