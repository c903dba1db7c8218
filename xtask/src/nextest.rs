//! cargo-nextest, which runs the tests, and the features that it runs them with.

use crate::command::{self, Ran, Show};
use crate::step::Verdict;
use crate::tally::Tally;
use crate::workspace::Workspace;
use std::process::Command;

/// Doc tests aside, tests are run by cargo-nextest: one process each, so that none can disturb another.
pub(crate) fn have_nextest(workspace: &Workspace) -> Result<(), String> {
    let mut question = command::cargo(&workspace.root);
    if command::run(question.args(["nextest", "--version"]), Show::Never).succeeded() {
        return Ok(());
    }
    println!("cargo-nextest is missing and will be installed");
    let mut install = command::cargo(&workspace.root);
    let ran = command::run(install.args(["install", "cargo-nextest", "--locked"]), Show::Live);
    ran.ending.map_err(|how| format!("cargo-nextest could not be installed ({how})"))
}

/// The features that tests are run with: the tools, and the simulated network.
pub(crate) fn is_testing(feature: &str) -> bool {
    ["testing", "sim", "sender", "full"].contains(&feature)
}

/// Runs cargo-nextest, and counts the tests.
pub(crate) fn run_nextest(command: &mut Command, tally: &mut Tally) -> Verdict {
    let ran = command::run(command, Show::Live);
    *tally = Tally::of_nextest(&ran.stderr);
    if ran.succeeded() && tally.passed == 0 {
        return Verdict::failed("cargo-nextest succeeded, but its summary counts no test that passed");
    }
    counted_verdict(ran, *tally)
}

/// Returns the verdict of a program that has run tests.
pub(crate) fn counted_verdict(ran: Ran, tally: Tally) -> Verdict {
    match ran.ending {
        Ok(()) => Verdict::Passed(format!("{} passed", tally.passed)),
        Err(how) => Verdict::failed(format!("{} passed, {} failed ({how})", tally.passed, tally.failed)),
    }
}
