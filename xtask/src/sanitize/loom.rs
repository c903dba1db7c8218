//! loom: the models of races with all their preemptions, where `cargo xtask test` allows few.

use super::suites;
use crate::command::{self, Show};
use crate::models::{self, Depth};
use crate::nextest::have_nextest;
use crate::step::Verdict;
use crate::tally::Tally;
use crate::workspace::Workspace;

pub(super) fn run(workspace: &Workspace) -> Verdict {
    if let Err(reason) = have_nextest(workspace) {
        return Verdict::Skipped(reason);
    }
    let ran = command::run(&mut models::run(workspace, Depth::Whole), Show::Live);
    let tally = Tally::of_nextest(&ran.stderr);
    suites::verdict(ran.ending, tally, "nothing")
}
