//! I/O: the contract of drivers, I/O contexts, and the two shapes of every call: attempts and transfers. It makes no system calls of
//! its own; drivers do.
//!
//! | module | contents |
//! | --- | --- |
//! | [`driver`] | the contract: a driver takes an operation, and owns its buffers until it is done |
//! | [`context`] | one thread, one driver, one queue |
//! | [`transfer`] | reading and writing with a buffer that is given away and comes back |
//! | [`signal_hub`] | which tasks wait for which signals |
//!
//! Programs use the facade crate `convoke`, which re-exports all of this.

#[doc(hidden)]
pub mod attempting;
pub mod context;
pub mod driver;
#[cfg(feature = "sender")]
mod sender;
pub mod signal_hub;
pub mod transfer;

pub use attempting::{CALLS_IN_A_ROW, count_calls_anew};
pub use context::{IO, IoContext, IoExecutor, Work, current_driver};
