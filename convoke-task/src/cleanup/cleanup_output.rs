//! What clean-ups return.

use core::fmt;
use core::future::Future;

/// What a clean-up returns: nothing, or a `Result` with nothing in it.
#[diagnostic::on_unimplemented(
    message = "a clean-up cannot return `{Self}`",
    label = "returns `{Self}`, which would be lost",
    note = "a clean-up returns `()`, or a `Result<(), E>`"
)]
pub trait CleanupOutput {
    /// How it fails; `Never` if it cannot.
    type Error: fmt::Display;

    /// As a result.
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

/// How the clean-up `C` fails.
pub type CleanupError<C> = <<C as Future>::Output as CleanupOutput>::Error;
