//! Conversion of errors as by `?`, where `Never` converts into any type.

use crate::Never;

/// An error that converts into an `E`: by `From`, as with `?`. [`Never`] converts into every type.
///
/// Defined beside [`AwaitError`](crate::AwaitError) because it distinguishes `Never` from all other types,
/// too.
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not convert into `{E}`",
    note = "`{Self}` must be a `std::error::Error`, and `{E}` must be `From<{Self}>`"
)]
pub trait FailsAs<E> {
    /// Converts the error.
    fn fail_as(self) -> E;
}

impl<E> FailsAs<E> for Never {
    fn fail_as(self) -> E {
        self.absurd()
    }
}

impl<E: From<C>, C: core::error::Error> FailsAs<E> for C {
    fn fail_as(self) -> E {
        E::from(self)
    }
}
