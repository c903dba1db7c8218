//! Building blocks of operations.
//!
//! Three kinds of operations are made once, here, and described in safe code elsewhere:
//!
//! - A [`Serial`] operation has one user at a time: `start`, the work that runs in it, the completion of that
//!   work, and so on. The [`SerialTurn`] goes from one to the next and is the right to use the operation. It
//!   may wait in the queue of an executor ([`Posted`]), or at an [`Arrival`] for the thread that has started
//!   the work.
//! - A [`Pending`] operation waits for an outcome from outside. Its [`Completion`] is the right to end the
//!   wait, once, on any thread; `start` and the completion meet, and the second to arrive completes.
//! - A [`Leaf`] does one thing when it starts.
//!
//! An operation with several children has one [`Children`]: `arm` and `link` run in the parent's `start`,
//! each child calls `arrive` when it has completed, and the last one calls the parent's `finish`, on its own
//! thread. Children that run on other threads read the parent's environment from an [`EnvAbove`], which
//! `start` fills before it starts them.
//!
//! | part | contents |
//! | --- | --- |
//! | [`Serial`], [`Steps`], [`SerialTurn`] | an operation that one holder of the turn at a time uses |
//! | [`Arrival`] | the rendezvous of a loop with the work that it starts |
//! | [`Posted`], [`Resume`] | a value that waits in the queue of an executor |
//! | [`Pending`], [`Until`], [`Completion`] | an operation that waits for an outcome from outside |
//! | [`Children`] | the count of children, and their stop source |
//! | [`EnvAbove`] | the environment of the parent's receiver |
//! | [`StartRendezvous`] | the rendezvous of `start` and a completion |
//! | [`Leaf`], [`Action`] | an operation that does one thing when it starts |

mod arrival;
mod ask_receiver;
mod children;
mod leaf;
mod pending;
mod posted;
mod serial;

pub use crate::erased::EnvAbove;
pub use arrival::Arrival;
pub use children::Children;
pub use convoke_core::raw::StartRendezvous;
pub use leaf::{Action, Leaf};
pub use pending::{Completion, Listening, Pending, Starting, Until};
pub use posted::{Posted, Resume};
pub use serial::{
    Absent, AbsentOperation, NextReceiver, Posts, Serial, SerialShared, SerialTurn, Steps, WorkReceiver,
};
