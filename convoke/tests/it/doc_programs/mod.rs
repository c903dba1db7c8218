//! The programs of the doc examples, each run with a stop request at every point. The comment of each test
//! names its example. Where an example creates threads, a second executor on the same loop replaces them.
mod cleanup;
mod flow;
mod limits;
mod readme;
mod scopes;
mod together;

use std::fmt::Debug;

use convoke::sender::prelude::*;
use convoke::testing::{Ended, Exploration, Probe, explore_stops_with};

/// Runs the program undisturbed, checks the outcome that the example states, and then runs it with a stop at
/// every point.
fn explore<T, P>(stated: Outcome<T>, program: impl Fn() -> P) -> Exploration
where
    T: Debug + PartialEq + Send + 'static,
    P: Future<Output = T> + Send + 'static,
{
    let door = if stated.is_stopped() { Ended::Stopped } else { Ended::Value };
    assert_eq!(sync_wait(task(program())), stated);
    explore_with(door, |_| program())
}

/// Explores a program that makes promises and checks its own outcome.
fn explore_with<P>(door: Ended, program: impl Fn(&Probe) -> P) -> Exploration
where
    P: Future<Output: Send + 'static> + Send + 'static,
{
    let exploration = explore_stops_with(program);
    assert_eq!(exploration.undisturbed().ended(), door, "{exploration}");
    // Miri explores a few points of a program, not all.
    assert!(cfg!(miri) || exploration.runs().len() == 2 * exploration.points(), "{exploration}");
    exploration
}
