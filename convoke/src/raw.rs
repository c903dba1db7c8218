//! The low-level door: what executors, drivers, algorithms and task types are made of.

pub use convoke_core::raw::*;
pub use convoke_exec::raw::*;
#[cfg(feature = "sender")]
pub use convoke_sender::raw::*;
pub use convoke_task::raw::*;
