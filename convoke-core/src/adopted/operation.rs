//! Work that is ready to start, and the receiver of its outcome.

#![allow(unsafe_code)]

use core::pin::Pin;

use crate::Env;

/// Work that is ready to start. It is pinned before it starts and until it has completed.
///
/// Safe code never starts an operation: awaiting, spawning and `sync_wait` do.
///
/// An operation is not `Unpin` (a leaf has a `PhantomPinned` field). It may be destroyed before its own
/// `start` returns, by the receiver that it completes. Only for a type that is not `Unpin` does the language
/// allow `&mut self` to outlive its target.
#[diagnostic::on_unimplemented(message = "`{Self}` is not an operation that can be started")]
pub trait Operation: Send {
    /// Starts the work.
    ///
    /// # Safety
    /// Called at most once. The storage is neither freed nor reused before the receiver was completed. From
    /// then on the operation may be dropped at any time, also before `start` returns.
    unsafe fn start(self: Pin<&mut Self>);
}

/// The receiver of the outcome of an operation, on any thread.
pub trait OnComplete<T>: Send {
    /// Takes the outcome. The operation that calls this does not use itself afterwards: it may have been
    /// destroyed.
    fn complete(self, outcome: T);

    /// Returns the environment that the work runs in.
    fn env(&self) -> &Env;
}
