//! Senders: work described as values, after C++26's `std::execution`.
//!
//! A [`Sender`] describes work. `connect` moves it, together with a [`Receiver`], into an [`Operation`];
//! `start` begins the work; the work then completes its receiver exactly once, with an
//! [`Outcome`](convoke_core::Outcome).
//!
//! - `connect` and `start` are called once each, on any thread. The owner of the operation calls `start`, and
//!   neither moves nor frees the operation before its receiver is completed.
//! - `complete` is called by the operation, on the thread that [`Completes`] tells. After that call the
//!   operation touches nothing of itself: the receiver may have freed it.
//! - The receiver's environment (`env`) is valid from `connect` until `complete`.
//!
//! | module | contents |
//! | --- | --- |
//! | [`Sender`], [`Receiver`], [`Operation`] | a description of work, the target of its outcome, connected work |
//! | [`algorithm`] | factories and adaptors of senders, one file each |
//! | [`Awaited`] | a sender as a future: the awaiting task adopts its operation |
//! | [`sync_wait()`] | starts a sender and waits for its outcome on the calling thread |
//! | [`async_scope`] | scopes that work may enter, and the verbs `nest`, `spawn` and `spawn_future` |
//! | [`CountingScope`] | counts the work that is started in it, and waits for it to end |
//! | [`raw`] | building blocks for operations with children |
//!
//! Programs use the facade crate `convoke`, which re-exports this one as `convoke::sender`.

#![cfg_attr(docsrs, feature(doc_cfg))]

pub mod algorithm;
pub mod async_scope;
mod awaiting;
mod completes;
pub mod counting_scope;
mod erased;
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

pub use async_scope::AsyncScope;
pub use awaiting::{AwaitError, AwaitableSender, Awaited, AwaitedFuture};
pub use completes::Completes;
pub use convoke_core::raw::Operation;
pub use counting_scope::{CountingScope, ScopeHandle};
pub use erased::AnySender;
pub use receiver::{Receiver, ReceiverOf};
pub use sender::{OutcomeOf, SameError, Sender};
pub use sleep::SleepOperation;
pub use stop_at::{AskToStop, Deadline, StopAt, deadline_after, deadline_at};
pub use sync_wait::{sync_wait, sync_wait_with};
pub use tasks::{TryTask, try_task};

pub mod raw {
    //! Building blocks for authors of algorithms: parts of operations with and without children.

    pub use crate::erased::Enclosing;
    pub use crate::operation::{
        Absent, AbsentOperation, Action, Arrival, Children, EnvAbove, Leaf, Listening, NextReceiver, Pending,
        Posted, Posts, Resume, Serial, SerialShared, SerialTurn, StartRendezvous, Starting, Steps, Until,
        WorkReceiver,
    };
}
