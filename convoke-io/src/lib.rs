//! I/O for Convoke: the driver contract, I/O contexts, and the two ways to do I/O (attempts and transfers).
//! This crate makes no system calls; drivers do.
//!
//! An *attempt* borrows a buffer, tries a call that does not block, and waits until the call may succeed. A
//! *transfer* moves its buffer to the driver and gets it back with the result. Sockets offer both.
//!
//! The parts stack up: `driver` knows nothing of the others, attempts and transfers use only `driver`, and
//! `context` gives a driver a thread that waits for it.
//!
//! | module | contents |
//! | --- | --- |
//! | [`driver`] | the contract between sockets and a kernel; its first page is the protocol |
//! | [`context`] | one thread, one driver, one queue of work |
//! | [`transfer`] | reads and writes that own their buffer while they run |
//! | [`signal_hub`] | the subscriptions of tasks to signals |
//!
//! Programs use the facade crate `convoke`, which re-exports all of this.

#![cfg_attr(docsrs, feature(doc_cfg))]

#[doc(hidden)]
pub mod attempting;
pub mod context;
pub mod driver;
#[cfg(feature = "sender")]
mod sender;
pub mod signal_hub;
pub mod transfer;

pub use context::{CONTEXTS, Contexts, IO, IoContext, IoExecutor, Work, current_driver};
