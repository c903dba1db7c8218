//! `cargo xtask sanitize`: the tests of all floors under memory checkers. Each needs something a fresh machine lacks, so
//! each says when it is skipped and why, and neither is part of `ci`.

use crate::arguments::Arguments;
use crate::command::{self, Show};
use crate::executables;
use crate::step::{self, Step, Verdict, counted};
use crate::test::{have_nextest, is_testing};
use crate::toolchain;
use crate::workspace::{self, Package, Workspace};
use std::process::Command;

/// Where the unsafe code is, and what leans on it: the upper floors have hardly any, but they are the ones that drop what is in
/// flight.
const FLOORS: [&str; 6] =
    ["convoke-core", "convoke-exec", "convoke-io", "convoke-poll", "convoke-sim", "convoke"];

/// Test programs that are left to AddressSanitizer: under valgrind, many times slower, each takes longer than all others together.
const TOO_LONG_FOR_VALGRIND: [&str; 6] =
    ["compile_fail", "examples", "explore_stops", "random_graphs", "random_tasks", "simulated"];

/// And one that would hang: where descriptors run out valgrind takes a connection, closes it and says that there was no room.
const NOT_FOR_VALGRIND: &str = "descriptors_run_out";

/// What is known to be somebody else's.
const SUPPRESSIONS: &str = "xtask/valgrind-suppressions.txt";

/// Frames that are kept for the next ones would hide their end from the checkers.
const NO_FRAME_CACHE: (&str, &str) = ("CONVOKE_FRAME_CACHE", "0");

/// Runs the checkers that are here; true if none found anything.
pub(crate) fn run(workspace: &Workspace, arguments: &Arguments) -> Result<bool, String> {
    let steps = vec![
        Step::new("address", "AddressSanitizer, with a nightly toolchain", || address(workspace)),
        Step::new("valgrind", "memcheck, leaks included", || valgrind(workspace)),
    ];
    let Some(steps) = step::select(steps, arguments)? else { return Ok(true) };
    Ok(step::run("sanitize", steps))
}

fn address(workspace: &Workspace) -> Verdict {
    let Some(nightly) = toolchain::installed(workspace, |name| name.starts_with("nightly")) else {
        return Verdict::Skipped("no nightly".into());
    };
    let host = match toolchain::running(workspace) {
        Ok(running) => running.host,
        Err(complaint) => return Verdict::failed(complaint),
    };
    if let Err(complaint) = have_nextest(workspace) {
        return Verdict::failed(complaint);
    }
    let mut command = command::cargo_of(&nightly, &workspace.root);
    // With an explicit target the flag does not reach build scripts and procedural macros, which could not load.
    command.env("RUSTFLAGS", "-Zsanitizer=address").env(NO_FRAME_CACHE.0, NO_FRAME_CACHE.1);
    // A process for each test, as always: some look at all tasks of their process, and a leak has a name.
    command.args(["nextest", "run", "--no-fail-fast", "--target", &host]);
    match command::run(command.args(of_the_floors(workspace)), Show::Live).ending {
        Ok(()) => Verdict::Passed(nightly),
        Err(how) => Verdict::failed(format!("tests failed under AddressSanitizer ({how})")),
    }
}

fn valgrind(workspace: &Workspace) -> Verdict {
    if !command::run(Command::new("valgrind").arg("--version"), Show::Never).succeeded() {
        return Verdict::Skipped("no valgrind".into());
    }
    let mut command = command::cargo(&workspace.root);
    let built = executables::build(command.args(["test", "--no-run"]).args(of_the_floors(workspace)));
    let mut built = match built {
        Ok(built) => built,
        Err(complaint) => return Verdict::failed(complaint),
    };
    built.retain(|executable| {
        let name = executable.name.as_str();
        !name.starts_with("loom_") && name != NOT_FOR_VALGRIND && !TOO_LONG_FOR_VALGRIND.contains(&name)
    });
    let mut findings = Vec::new();
    for executable in &built {
        let mut command = Command::new("valgrind");
        command.env(NO_FRAME_CACHE.0, NO_FRAME_CACHE.1);
        command.args([
            "--quiet",
            "--error-exitcode=9",
            "--leak-check=full",
            "--errors-for-leak-kinds=definite",
            "--show-leak-kinds=definite",
        ]);
        command.arg(format!("--suppressions={SUPPRESSIONS}"));
        // Valgrind runs one thread at a time; unfairly chosen, a thread that spins would starve the one it waits for.
        command.arg("--fair-sched=try").arg(&executable.path);
        // So one test at a time is no slower, and none of them sees the tasks of another.
        command.arg("--test-threads=1").current_dir(&workspace.root);
        if let Err(how) = command::run(&mut command, Show::Live).ending {
            findings.push(format!("{}: {how}", executable.name));
        }
    }
    Verdict::from_findings(findings, counted(built.len(), "test program"))
}

/// The arguments that choose the tests of those crates, with all that is there for tests.
fn of_the_floors(workspace: &Workspace) -> Vec<String> {
    let of_floors = |package: &&Package| FLOORS.contains(&package.name.as_str());
    let packages = workspace.packages.iter().filter(of_floors);
    let mut arguments = workspace::select(packages.clone());
    arguments.push("--tests".to_owned());
    arguments.extend(workspace::features(packages, is_testing));
    arguments
}
