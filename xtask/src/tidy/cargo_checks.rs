//! The checks that cargo brings: formatting, lints, documentation.
//!
//! The feature `loom` swaps the atomics for loom's, so it is never on together with the rest: hence no
//! `--all-features` over the workspace, and two runs of clippy instead of one.

use crate::command::{self, Show};
use crate::models::MODELS;
use crate::step::Verdict;
use crate::workspace::{self, Workspace};
use std::process::Command;

pub(super) fn fmt(workspace: &Workspace) -> Verdict {
    verdict(command::cargo(&workspace.root).args(["fmt", "--all", "--check"]), "run `cargo fmt --all`")
}

/// Every package, the bench and its peers among them, with every feature except loom.
pub(super) fn clippy(workspace: &Workspace) -> Verdict {
    let mut command = command::cargo(&workspace.root);
    command.args(["clippy", "--all-targets"]).args(workspace.everything());
    verdict(deny(&mut command), "clippy has something to say")
}

/// The model-checked build and its tests.
pub(super) fn clippy_loom(workspace: &Workspace) -> Verdict {
    let mut command = command::cargo(&workspace.root);
    command.arg("clippy").args(MODELS);
    verdict(deny(&mut command), "clippy has something to say")
}

/// Builds the documentation with all features, as it is published.
pub(super) fn doc(workspace: &Workspace) -> Verdict {
    let libraries = workspace.libraries();
    let features = workspace::features(libraries.clone(), |name| name != "loom" && name != "default");
    let mut command = command::cargo(&workspace.root);
    command.env("RUSTDOCFLAGS", "-Dwarnings");
    command.args(["doc", "--no-deps"]).args(workspace::select(libraries)).args(features);
    verdict(&mut command, "rustdoc has something to say")
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
