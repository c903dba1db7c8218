//! Several futures at once inside one task: [`join()`] and [`try_join()`] wait for all of them, [`race()`]
//! for the first. The losers of a race, and the siblings of a failure, are asked to stop and awaited; none is
//! dropped while it runs.

// A `Group` holds what the branches share: the region in which they are asked to stop, and the value that
// ended them early. A `Rule` (`All`, `AllOk`, `First`) says what the end of a branch means. The branches are
// stored in a tuple (`tuples`), where every unfinished one is polled each time, or in a vector (`vector`),
// where only the woken ones are: that is the work of `BranchSet`, with a `WakeSet` of wake flags. Local
// scopes and `concurrent` use the last two as well. All of it runs on the thread that polls the task; only
// wake flags are touched by other threads.

pub(crate) mod branch_set;
mod branches;
pub(crate) mod ended;
mod group;
mod join;
mod race;
mod select;
mod try_join;
mod tuples;
mod vector;
pub(crate) mod wake_set;

#[doc(hidden)]
pub use branches::BranchSlots;
pub use branches::Branches;
#[doc(hidden)]
pub use group::{Group, Rule, Sort};
pub use join::{All, Join, join};
pub use race::{First, Race, race};
#[doc(hidden)]
pub use select::{Selected, branch, no_branch};
pub use try_join::{AllOk, TryJoin, try_join};
