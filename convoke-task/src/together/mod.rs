//! Several futures at once inside one task: all of them, or the first of them. Losers and siblings of what failed are asked to
//! stop and awaited; none is dropped while it runs. [`join()`], [`try_join()`], [`race()`].

pub(crate) mod branch_set;
mod branches;
pub(crate) mod ended;
mod group;
mod join;
mod race;
mod try_join;
mod tuples;
mod vector;
pub(crate) mod wake_set;

pub use branches::{Branches, Rooms};
pub use group::{Group, Rule, Sort};
pub use join::{All, Join, join};
pub use race::{First, Race, race};
pub use try_join::{AllOk, TryJoin, try_join};
