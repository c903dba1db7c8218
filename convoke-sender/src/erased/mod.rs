//! Senders without their type: what a receiver has to know of them, because it may take one as a tail call. Nothing here
//! knows the traits `Sender` and `Receiver`; `algorithm::boxed` implements them for these types.
//!
//! | part | contents |
//! | --- | --- |
//! | [`AnySender`] | the sender, as it is stored and dropped |
//! | [`ErasedOperation`], [`AnyReceiver`] | its operation without the type of the receiver; what the work in it completes |
//! | `trampoline` | starts, completes and drops nested ones without growing the stack by their number |
//! | [`Enclosing`] | the identity of a boxed operation |
//! | [`EnvAbove`] | the environment of a receiver, for work on any thread |

mod any_sender;
mod enclosing;
mod env_above;
mod erased_operation;
mod trampoline;

pub use any_sender::AnySender;
pub(crate) use any_sender::{AnyWork, Erased, ErasedSender};
pub use enclosing::Enclosing;
pub use env_above::EnvAbove;
pub use erased_operation::AnyReceiver;
pub(crate) use erased_operation::{ErasedOperation, Next};
pub(crate) use trampoline::{Resumable, Trampoline, ask};
