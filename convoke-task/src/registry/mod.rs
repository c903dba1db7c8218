//! The registry of tasks: how a program that is inspected finds them.
//!
//! It knows the parents of tasks (scopes, launches), not the tasks: starting a task costs nothing here. `entry` is a parent's
//! entry, `found` what is copied out of tasks under the locks, `ask` asks one task to stop. The tree that people see is made of
//! it one layer above.

#[cfg(feature = "testing")]
mod ask;
#[cfg(not(feature = "loom"))]
mod entry;
#[cfg_attr(feature = "loom", expect(dead_code, reason = "a model has no registry"))]
mod found;
#[cfg(feature = "loom")]
mod no_entry;
#[cfg(feature = "loom")]
use no_entry as entry;

#[cfg(feature = "testing")]
pub use ask::ask_stop;
pub(crate) use entry::Entry;
pub use entry::look_at_all;
pub use found::{Found, Seen};
