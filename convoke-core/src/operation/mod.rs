//! Connected work, and the pieces that operations with children are built of.

mod children;
mod env_above;
mod handshake;
mod leaf;
mod slot;

pub use children::Children;
pub use env_above::EnvAbove;
pub use handshake::Handshake;
pub use leaf::{Action, Leaf};
pub use slot::Slot;
pub(crate) use slot::no_unwind;

use core::pin::Pin;

/// A sender connected to its receiver: work that is ready to start. It is pinned before it starts and until it
/// has completed its receiver.
///
/// Safe code never starts one: `sync_wait`, spawning and awaiting do.
///
/// An operation is not `Unpin` (a leaf keeps a `PhantomPinned`). It may be destroyed before its own `start`
/// returns, by the receiver it completes; only for a type that is not `Unpin` does the language allow `&mut self`
/// to outlive what it points to.
#[diagnostic::on_unimplemented(message = "`{Self}` is not an operation that can be started")]
pub trait Operation: Send {
    /// Starts the work.
    ///
    /// # Safety
    /// Called at most once. The storage is neither freed nor reused until the receiver was completed; from
    /// then on the operation may be dropped at any time, also before `start` returns.
    unsafe fn start(self: Pin<&mut Self>);
}
