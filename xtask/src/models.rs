//! The models of races, which loom runs under every schedule: with few preemptions on each visit to the workshop, and with
//! more of them, for as long as it takes, as a step of `cargo xtask sanitize`.

use crate::command;
use crate::workspace::Workspace;
use std::process::Command;

/// The arguments that choose the models: a package that needs as few crates as it can, because its feature compiles all of them
/// once more.
pub(crate) const MODELS: [&str; 6] = ["-p", "convoke-models", "--features", "loom", "--test", "loom"];

/// The number of preemptions in a schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Depth {
    /// At most two, and one in models that take long. Two find nearly all bugs that any number finds.
    Short,
    /// The model's own number of preemptions, or three.
    Whole,
}

/// Returns the command that runs the models. An explicit `LOOM_MAX_PREEMPTIONS` is respected.
pub(crate) fn run(workspace: &Workspace, depth: Depth) -> Command {
    let mut command = command::cargo(&workspace.root);
    let by_default = match depth {
        Depth::Short => "2",
        Depth::Whole => "3",
    };
    if std::env::var_os("LOOM_MAX_PREEMPTIONS").is_none() {
        command.env("LOOM_MAX_PREEMPTIONS", by_default);
    }
    if depth == Depth::Short {
        command.env("CONVOKE_MOST_PREEMPTIONS", by_default);
    }
    command.args(["nextest", "run", "--no-fail-fast", "--cargo-profile", "models"]).args(MODELS);
    if depth == Depth::Whole {
        command.args(["--profile", "models"]);
    }
    command
}
