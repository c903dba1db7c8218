//! Structured async for Rust: every task belongs to a scope, and every stop awaits its clean-up.
#![doc = ""]
#![doc = include_str!("../../README.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]

pub mod alloc;
pub mod cleanup;
#[cfg(feature = "net")]
pub mod driver;
pub mod env;
pub mod executor;
mod feature_macros;
#[cfg(any(doc, doctest))]
pub mod guide;
pub mod inspect;
#[cfg(feature = "net")]
pub mod io;
pub mod prelude;
pub mod raw;
pub mod retry;
#[cfg(feature = "net")]
pub mod runtime;
pub mod scope;
#[cfg(feature = "sender")]
pub mod sender;
pub mod task;
#[cfg(feature = "testing")]
pub mod testing;
pub mod time;

#[doc(inline)]
pub use convoke_core::{Executor, Never, Outcome, Panic, StopReason, StopSource, StopToken};
#[cfg(feature = "pool")]
#[doc(inline)]
pub use convoke_exec::ThreadPool;
#[doc(inline)]
pub use convoke_exec::time::sleep;
#[cfg(feature = "macros")]
pub use convoke_macros::{main, test};
#[cfg(feature = "net")]
#[doc(inline)]
pub use convoke_net::{net, signal};
#[cfg(feature = "sim")]
#[doc(inline)]
pub use convoke_sim as sim;
#[doc(inline)]
pub use convoke_sync as sync;
#[doc(inline)]
pub use convoke_task::blocking::blocking;
#[doc(inline)]
pub use convoke_task::cleanup::{AsyncClose, Exit, ensure, using};
#[doc(inline)]
pub use convoke_task::launch::{block_on, launch};
#[doc(inline)]
pub use convoke_task::limits::{shield, timeout};
#[doc(inline)]
pub use convoke_task::local_scope::local_scope;
#[doc(inline)]
pub use convoke_task::scope::{Scope, blocking_scope, scope};
#[doc(inline)]
pub use convoke_task::select;
#[doc(inline)]
pub use convoke_task::together::{join, race, try_join};
#[doc(inline)]
pub use convoke_task::{Stopped, catch_stopped, checkpoint, run_on};
#[cfg(feature = "tls")]
#[doc(inline)]
pub use convoke_tls as tls;
#[cfg(feature = "net")]
#[doc(inline)]
pub use runtime::Runtime;

/// For the macros of this crate and of its users.
#[cfg(feature = "sender")]
#[doc(hidden)]
pub use convoke_sender::awaitable;
