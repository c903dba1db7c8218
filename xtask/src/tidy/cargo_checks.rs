//! The checks that cargo brings: formatting, lints, documentation.
//!
//! The feature `loom` swaps the atomics for loom's, so it is never on together with the rest: hence no
//! `--all-features` over the workspace, and three runs of clippy instead of one.

use crate::command::{self, Show};
use crate::step::Verdict;
use crate::workspace::{self, Workspace};
use std::process::Command;

const BENCH: &str = "convoke-bench";

pub(super) fn fmt(workspace: &Workspace) -> Verdict {
    verdict(command::cargo(&workspace.root).args(["fmt", "--all", "--check"]), "run `cargo fmt --all`")
}

/// The default members with every feature they have, except loom.
pub(super) fn clippy(workspace: &Workspace) -> Verdict {
    let members = workspace.default_members();
    let mut command = command::cargo(&workspace.root);
    command.arg("clippy").args(workspace::select(members.clone())).arg("--all-targets");
    command.args(workspace::features(members, |name| name != "loom" && name != "default"));
    verdict(deny(&mut command), "clippy has something to say")
}

/// The model-checked build and its tests.
pub(super) fn clippy_loom(workspace: &Workspace) -> Verdict {
    let packages = workspace.loom_packages();
    if packages.clone().next().is_none() {
        return Verdict::Skipped("no crate has the feature loom".into());
    }
    let mut command = command::cargo(&workspace.root);
    command.arg("clippy").args(workspace::select(packages.clone())).arg("--tests");
    command.args(workspace::features(packages, |name| name == "loom"));
    verdict(deny(&mut command), "clippy has something to say")
}

/// The bench pulls in every peer, so it is compiled by itself.
pub(super) fn clippy_bench(workspace: &Workspace) -> Verdict {
    let mut command = command::cargo(&workspace.root);
    command.args(["clippy", "-p", BENCH, "--all-targets", "--all-features"]);
    verdict(deny(&mut command), "clippy has something to say")
}

/// Once as users see it, once with the testing kit: a link that works only in one of the two is broken.
pub(super) fn doc(workspace: &Workspace) -> Verdict {
    let libraries = workspace.libraries();
    let plain = Vec::new();
    let testing = workspace::features(libraries.clone(), |name| name == "testing");
    for features in [plain, testing] {
        let mut command = command::cargo(&workspace.root);
        command.env("RUSTDOCFLAGS", "-Dwarnings");
        command.args(["doc", "--no-deps"]).args(workspace::select(libraries.clone())).args(features);
        let verdict = verdict(&mut command, "rustdoc has something to say");
        if matches!(verdict, Verdict::Failed(_)) {
            return verdict;
        }
    }
    Verdict::Passed(String::new())
}

fn deny(command: &mut Command) -> &mut Command {
    command.args(["--", "-D", "warnings"])
}

fn verdict(command: &mut Command, complaint: &str) -> Verdict {
    match command::run(command, Show::Live).ending {
        Ok(()) => Verdict::Passed(String::new()),
        Err(how) => Verdict::failed(format!("{complaint} ({how})")),
    }
}
