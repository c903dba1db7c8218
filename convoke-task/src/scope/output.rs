//! The outputs that children of a scope may have. The outputs of bodies are those of [`BodyOutput`].

use convoke_core::BodyOutput;

use super::blocking_spawn::BlockingHandle;
use super::bound::Bound;
use super::handle::Handle;
use super::spawn::Scope;
use crate::flow::NoReturn;
use crate::task::HandleKind;

/// Output of a child in a scope that returns an `O`: `()`, or a `Result` with the error type of the scope.
#[diagnostic::on_unimplemented(
    message = "a child that returns `{Self}` does not fit a scope that returns `{O}`",
    label = "a child returns `()`, or a `Result<(), E>` where the scope returns a `Result<_, E>`",
    note = "to use what a child returns, start it with `spawn_future` and await the handle",
    note = "an error of another type is turned into the scope's with `map_err`"
)]
pub trait ChildOutput<O>: Sized {
    /// Returns the output of the scope, if the child has failed.
    fn failure(self) -> Option<O>;
}

impl<O> ChildOutput<O> for () {
    #[inline]
    fn failure(self) -> Option<O> {
        None
    }
}

/// A child that never returns.
impl<O> ChildOutput<O> for NoReturn {
    fn failure(self) -> Option<O> {
        self
    }
}

impl<T, E> ChildOutput<Result<T, E>> for Result<(), E> {
    #[inline]
    fn failure(self) -> Option<Result<T, E>> {
        self.err().map(Err)
    }
}

impl<T, K: HandleKind> BodyOutput for Handle<T, K> {}

impl<T> BodyOutput for BlockingHandle<'_, T> {}

impl<O> BodyOutput for Scope<O> {}

impl BodyOutput for Bound {}
