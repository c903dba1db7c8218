//! The outputs that clean-ups may have.

use core::fmt;
use core::future::Future;

/// Output of a clean-up: `()`, or a `Result<(), E>`.
#[diagnostic::on_unimplemented(
    message = "a clean-up cannot return `{Self}`",
    label = "returns `{Self}`, which would be lost",
    note = "a clean-up returns `()`, or a `Result<(), E>`"
)]
pub trait CleanupOutput {
    /// Error of the clean-up; `Never` if it cannot fail.
    type Error: fmt::Display;

    /// Converts the output to a `Result`.
    fn into_result(self) -> Result<(), Self::Error>;
}

impl CleanupOutput for () {
    type Error = convoke_core::Never;

    fn into_result(self) -> Result<(), Self::Error> {
        Ok(())
    }
}

impl<E: fmt::Display> CleanupOutput for Result<(), E> {
    type Error = E;

    fn into_result(self) -> Self {
        self
    }
}

/// Error of the clean-up `C`.
pub type CleanupError<C> = <<C as Future>::Output as CleanupOutput>::Error;
