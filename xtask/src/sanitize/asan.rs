//! AddressSanitizer, over all tests.

use super::left_out::Tool;
use super::{nightly, suites};
use crate::command;
use crate::step::Verdict;
use crate::toolchain;
use crate::workspace::Workspace;

pub(super) fn run(workspace: &Workspace) -> Verdict {
    let nightly = match nightly::find_or_install(workspace) {
        Ok(nightly) => nightly,
        Err(reason) => return Verdict::Skipped(reason),
    };
    let host = match toolchain::running(workspace) {
        Ok(running) => running.host,
        Err(complaint) => return Verdict::failed(complaint),
    };
    let mut command = command::cargo_of(&nightly, &workspace.root);
    // With an explicit target the flag does not reach build scripts and procedural macros, which could not load.
    command.env("RUSTFLAGS", "-Zsanitizer=address").env("ASAN_OPTIONS", "detect_stack_use_after_return=1");
    command.args(["nextest", "run", "--target", &host, "--target-dir", "target/asan"]);
    suites::run(workspace, &mut command, Tool::Asan)
}
