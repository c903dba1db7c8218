//! The registry of tasks: how an inspector finds the tasks of the process.
//!
//! The registry lists the parents of tasks (scopes, launches), not the tasks: spawning a task costs nothing
//! here. A parent links its [`Entry`] when it opens and unlinks it before it goes. [`visit_all`] visits
//! every parent from any thread, under the lock of its shard, and the parent adds its tasks to a [`Found`],
//! under its own lock. `convoke-inspect` builds the tree from that.
//!
//! | file | contents |
//! | --- | --- |
//! | `entry.rs` | the lists, their locks, and the rules for them; `no_entry.rs` is its twin for models |
//! | `found.rs` | the buffer into which tasks are copied |
//! | `ask.rs` | asks one task to stop, for explorations |

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
pub use entry::visit_all;
pub(crate) use found::Visit;
pub use found::{Found, Seen};
