//! cargo-nextest, which runs the tests, and the features that it runs them with.

use crate::command::{self, Show};
use crate::workspace::Workspace;

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

/// The features that models are built with: they reach through the facade into all crates but the simulator.
pub(crate) const MODEL_FEATURES: &str = "testing,loom";

/// The features that tests are run with: the tools, and the simulated network.
pub(crate) fn is_testing(feature: &str) -> bool {
    ["testing", "sim", "sender", "full"].contains(&feature)
}
