//! The nightly toolchain of Miri and the sanitizers: one date for everybody, so that a finding is the same everywhere.

use crate::command::{self, Show};
use crate::toolchain;
use crate::workspace::Workspace;
use std::process::Command;

/// Raised by hand, together with whatever the newer tools then find.
const NIGHTLY: &str = "nightly-2026-05-20";

/// Components that the steps need and `--profile minimal` does not have: the interpreter, and the sources of `std` to build it again.
const COMPONENTS: [&str; 2] = ["miri", "rust-src"];

/// The toolchain if it is installed with all components; else the reason for not using it.
pub(super) fn find(workspace: &Workspace) -> Result<String, String> {
    let is_ours =
        |name: &str| name.strip_prefix(NIGHTLY).is_some_and(|rest| !rest.starts_with(char::is_numeric));
    let Some(name) = toolchain::installed(workspace, is_ours) else {
        return Err(format!("{NIGHTLY} is not installed"));
    };
    let mut rustup = Command::new("rustup");
    rustup.args(["component", "list", "--installed", "--toolchain", &name]);
    let ran = command::run(rustup.current_dir(&workspace.root), Show::Never);
    match COMPONENTS.iter().find(|component| !ran.stdout.lines().any(|line| line.starts_with(*component))) {
        Some(component) => Err(format!("{NIGHTLY} has no component {component}")),
        None => Ok(name),
    }
}

/// The toolchain, installed if need be; the reason if it cannot be.
pub(super) fn find_or_install(workspace: &Workspace) -> Result<String, String> {
    let Err(missing) = find(workspace) else { return find(workspace) };
    println!("{missing} and will be");
    let mut rustup = Command::new("rustup");
    rustup.args(["toolchain", "install", NIGHTLY, "--profile", "minimal"]);
    rustup.args(COMPONENTS.iter().flat_map(|component| ["-c", component])).current_dir(&workspace.root);
    let ran = command::run(&mut rustup, Show::Live);
    ran.ending.map_err(|how| format!("{missing}, and rustup could not install it ({how})"))?;
    find(workspace)
}
