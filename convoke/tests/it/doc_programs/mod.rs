//! The programs of the doc examples, each run with a request to stop at every point. Each test says whose example it is; where
//! an example makes threads of its own, a second executor on the same loop stands for them.
mod cleanup;
mod flow;
mod limits;
mod readme;
mod scopes;
mod together;

use std::fmt::Debug;

use convoke::sender::prelude::*;
use convoke::testing::{Ended, Exploration, Probe, explore_stops_with};

/// Runs the program as the example does, to the outcome that it states; then with a stop at every point.
fn explore<T, P>(stated: Outcome<T>, program: impl Fn() -> P) -> Exploration
where
    T: Debug + PartialEq + Send + 'static,
    P: Future<Output = T> + Send + 'static,
{
    let door = if stated.is_stopped() { Ended::Stopped } else { Ended::Value };
    assert_eq!(sync_wait(task(program())), stated);
    explore_with(door, |_| program())
}

/// The same for a program that makes promises, and says itself whether its outcome is right.
fn explore_with<P>(door: Ended, program: impl Fn(&Probe) -> P) -> Exploration
where
    P: Future<Output: Send + 'static> + Send + 'static,
{
    let exploration = explore_stops_with(program);
    assert_eq!(exploration.undisturbed().ended(), door, "{exploration}");
    assert_eq!(exploration.runs().len(), 2 * exploration.points());
    exploration
}
