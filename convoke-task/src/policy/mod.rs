//! Scopes with another policy than that the first failure stops all: [`scope_with()`]. A policy is a value; it says when
//! enough has come of the children, and what all of it comes to.
//!
//! | file | what is in it |
//! | --- | --- |
//! | `rules.rs` | the trait, and the policies there are |
//! | `failures.rs` | how a child has failed, and all that have |
//! | `open.rs` | the scope: an ordinary one, whose children give their results to the tally |
//! | `entrance.rs` | how children get into a scope that somebody else judges |
//! | `handle.rs` `restarting.rs` | starting children: ordinary ones, daemons, such as are started again |
//! | `supervisor.rs` | children of an ordinary scope whose failures are told and forgotten |
//! | `on.rs` | any policy, with children on another executor |
//! | `tally.rs` | what has come of them so far |
//! | `caught.rs` | a future whose panic is a result |

mod caught;
mod entrance;
mod failures;
mod handle;
mod on;
mod open;
mod restarting;
mod rules;
mod supervisor;
mod tally;

pub use failures::{Failure, FailureKind, Failures};
pub use handle::PolicyScope;
pub use on::On;
pub use open::{PolicyBody, scope_with};
pub use restarting::Restarting;
pub use rules::{FirstError, FirstSuccess, Policy, Quorum, Report, Supervise, WaitForAll};
pub use supervisor::Supervisor;
pub use tally::Tally;
