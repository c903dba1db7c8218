//! Senders: work described as values, after C++26's `std::execution`.
//!
//! | module | contents |
//! | --- | --- |
//! | [`Sender`], [`Receiver`], [`Operation`] | work described, where its outcome goes, work connected |
//! | [`algorithm`] | factories and adaptors of senders, one file each |
//! | [`Awaited`] | a sender as a future: adopted by the task that awaits it |
//! | [`sync_wait()`] | starts a sender and waits for its outcome on the calling thread |
//! | [`CountingScope`] | counts the work that is started in it, and waits for its end |
//! | [`raw`] | what operations with children are built of |
//!
//! Programs use the facade crate `convoke`, which re-exports this one as `convoke::sender`.

pub mod algorithm;
mod awaiting;
mod completes;
pub mod counting_scope;
mod operation;
pub mod prelude;
mod receiver;
mod sender;
mod sleep;
mod stop_at;
mod sync_wait;
mod tasks;
#[cfg(any(test, feature = "testing"))]
pub mod testing;

pub use awaiting::{AwaitError, Awaited};
pub use completes::Completes;
pub use convoke_core::raw::Operation;
pub use counting_scope::{CountingScope, ScopeHandle};
pub use receiver::{Receiver, ReceiverOf};
pub use sender::{OutcomeOf, SameError, Sender};
pub use sleep::SleepOperation;
pub use stop_at::{AskToStop, StopAt, stop_after, stop_at};
pub use sync_wait::{sync_wait, sync_wait_with};

pub mod raw {
    //! For people who write algorithms: what operations with children are built of.

    pub use crate::operation::{Action, Children, Enclosing, EnvAbove, Handshake, Leaf};
}
