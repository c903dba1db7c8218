//! `cargo xtask sanitize`: the tests of the lower floors under memory checkers. Each needs something a fresh machine
//! lacks, so each says when it is skipped and why, and neither is part of `ci`.

use crate::arguments::Arguments;
use crate::command::{self, Show};
use crate::executables;
use crate::step::{self, Step, Verdict, counted};
use crate::toolchain;
use crate::workspace::{self, Package, Workspace};
use std::process::Command;

/// Where the unsafe code is.
const FLOORS: [&str; 2] = ["convoke-core", "convoke-exec"];

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
    let mut command = command::cargo_of(&nightly, &workspace.root);
    // With an explicit target the flag does not reach build scripts and procedural macros, which could not load.
    command.env("RUSTFLAGS", "-Zsanitizer=address").env(NO_FRAME_CACHE.0, NO_FRAME_CACHE.1);
    command.args(["test", "--no-fail-fast", "--target", &host]);
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
    built.retain(|executable| !executable.name.starts_with("loom_"));
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
        // Valgrind runs one thread at a time; unfairly chosen, a thread that spins would starve the one it waits for.
        command.arg("--fair-sched=try").arg(&executable.path).current_dir(&workspace.root);
        if let Err(how) = command::run(&mut command, Show::Live).ending {
            findings.push(format!("{}: {how}", executable.name));
        }
    }
    Verdict::from_findings(findings, counted(built.len(), "test program"))
}

/// The arguments that choose the tests of those crates, with the testing kit.
fn of_the_floors(workspace: &Workspace) -> Vec<String> {
    let of_floors = |package: &&Package| FLOORS.contains(&package.name.as_str());
    let packages = workspace.packages.iter().filter(of_floors);
    let mut arguments = workspace::select(packages.clone());
    arguments.push("--tests".to_owned());
    arguments.extend(workspace::features(packages, |name| name == "testing"));
    arguments
}
