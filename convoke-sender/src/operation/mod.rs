//! Building blocks of operations.
//!
//! An operation with several children has one [`Children`]: `arm` and `link` run in the parent's `start`,
//! each child calls `arrive` when it has completed, and the last one calls the parent's `finish`, on its own
//! thread. Children that run on other threads read the parent's environment from an [`EnvAbove`], which
//! `start` fills before it starts them. An operation with one child and a stop callback settles who finishes
//! it with a [`Handshake`]. An operation without children is a [`Leaf`].
//!
//! | part | contents |
//! | --- | --- |
//! | [`Children`] | the count of children, and their stop source |
//! | [`EnvAbove`] | the environment of the parent's receiver |
//! | [`Handshake`] | the rendezvous of `start` and a completion |
//! | [`Leaf`], [`Action`] | an operation that does one thing when it starts |

mod arrival;
mod children;
mod enclosing;
mod env_above;
mod leaf;
mod pending;
mod posted;
mod serial;

pub use arrival::Arrival;
pub use children::Children;
pub use convoke_core::raw::Handshake;
pub use enclosing::Enclosing;
pub use env_above::EnvAbove;
pub use leaf::{Action, Leaf};
pub use pending::{Completion, Listening, Pending, Starting, Until};
pub use posted::{Posted, Resume};
pub use serial::{Absent, AbsentOperation, Posts, Serial, SerialTurn, Steps, WorkReceiver};
