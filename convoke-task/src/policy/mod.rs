//! Scopes with another policy than "the first failure stops all": [`scope_with()`]. A [`Policy`] is a value.
//! It decides when the children have done enough, and makes the output of the scope from their results.
//!
//! For a server, whose scope never ends, use [`Scope::supervise`](crate::Scope::supervise): it reports
//! failures, and does not store them.

// A scope with a policy is an ordinary scope that returns `Result<(), PolicyMet>`. Its children are wrapped: a
// wrapper catches panics, adds the name and spawn site of the child (`reported`), and passes the result to the
// ledger (`tally`), on the thread on which the child ends. The ledger asks the policy
// (`rules`), for one result at a time. If that was enough, the child returns `Err(PolicyMet)`, which stops the
// ordinary scope. When it has ended, the policy makes the output.
//
// The ledger counts the body and the children that are not daemons. When the count is zero, it asks the
// daemons to stop.

mod daemon;
mod failures;
mod handle;
mod on;
mod open;
mod reported;
mod rules;
mod supervisor;
mod tally;

pub use crate::scope::{ChildFailure, FailureKind};
pub use daemon::Daemons;
pub use failures::Failures;
pub use handle::PolicyScope;
pub use on::On;
pub use open::{PolicyBody, scope_with};
pub use rules::{FirstError, FirstSuccess, Policy, Quorum, ReportFailure, Supervise, WaitForAll};
pub use supervisor::Supervisor;
pub use tally::Tally;
