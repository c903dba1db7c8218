//! Errors that become others as `?` has it, where `Never` may become any.

use crate::Never;

/// An error that turns into an `E`: by `From`, as with `?`; and [`Never`] turns into everything.
///
/// It lies beside [`AwaitError`](crate::AwaitError) because it, too, tells `Never` from the others.
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not turn into `{E}`",
    note = "`{Self}` must be a `std::error::Error`, and `{E}` must be `From<{Self}>`"
)]
pub trait FailsAs<E> {
    /// Turns it into that.
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
