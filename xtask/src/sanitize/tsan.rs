//! ThreadSanitizer, over the suites that use several threads.

use super::left_out::Tool;
use super::{nightly, suites};
use crate::command;
use crate::step::Verdict;
use crate::toolchain;
use crate::workspace::Workspace;

/// The second flag lets rustc link crates that were built with the first one and crates that were built without.
const FLAGS: &str = "-Zsanitizer=thread -Cunsafe-allow-abi-mismatch=sanitizer";

/// A thief of crossbeam-deque reads a slot that its owner may be writing, and throws away what it read if so. The tool does not
/// see that the value is not used. tokio gives the address of a registration to the kernel, and gets it back on the thread of its
/// driver: the tool does not see that the one comes before the other. Only the allocation is named: tokio's driver calls our wakers,
/// and a race in those must be reported.
const SUPPRESSIONS: &str = "race:crossbeam_deque::deque\nrace:registration_set::RegistrationSet>::allocate\n";

pub(super) fn run(workspace: &Workspace) -> Verdict {
    let nightly = match nightly::find_or_install(workspace) {
        Ok(nightly) => nightly,
        Err(reason) => return Verdict::Skipped(reason),
    };
    let host = match toolchain::running(workspace) {
        Ok(running) => running.host,
        Err(complaint) => return Verdict::failed(complaint),
    };
    let suppressions = workspace.root.join("target/tsan.suppressions");
    if let Err(error) = std::fs::write(&suppressions, SUPPRESSIONS) {
        return Verdict::failed(format!("{} cannot be written: {error}", suppressions.display()));
    }
    let mut command = command::cargo_of(&nightly, &workspace.root);
    command.env("RUSTFLAGS", FLAGS).env("TSAN_OPTIONS", format!("suppressions={}", suppressions.display()));
    // A backtrace of a panic takes half a minute here.
    command.env("RUST_BACKTRACE", "0");
    // `std` is built again: the locks and channels in it order things that the tool must see.
    command.args(["nextest", "run", "-Zbuild-std", "--target", &host, "--target-dir", "target/tsan"]);
    suites::run(workspace, &mut command, Tool::Tsan)
}
