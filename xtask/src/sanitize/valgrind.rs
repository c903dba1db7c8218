//! Valgrind's memcheck, over the test programs as they are built anyway.

use super::left_out::{self, Tool};
use super::suites::{self, NO_FRAME_CACHE, Programs};
use crate::command::{self, Show};
use crate::executables;
use crate::step::{Verdict, counted};
use crate::workspace::Workspace;
use std::process::Command;

/// Errors in code that is not ours.
const SUPPRESSIONS: &str = "xtask/valgrind-suppressions.txt";

pub(super) fn run(workspace: &Workspace) -> Verdict {
    if let Err(reason) = find_or_install() {
        return Verdict::Skipped(reason);
    }
    let mut command = command::cargo(&workspace.root);
    command.args(["test", "--no-run"]).args(suites::tests_of(workspace, Tool::Valgrind, &Programs::ALL));
    let built = match executables::build(&mut command) {
        Ok(built) => built,
        Err(complaint) => return Verdict::failed(complaint),
    };
    let left_out = left_out::tell(Tool::Valgrind);
    let mut findings = Vec::new();
    for (index, executable) in built.iter().enumerate() {
        let program = left_out::name_of_executable(executable);
        println!("--- {}/{} {program}", index + 1, built.len());
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
        command.arg("--test-threads=1").args(suites::skips(&left_out, &program)).current_dir(&workspace.root);
        if let Err(how) = command::run(&mut command, Show::Live).ending {
            findings.push(format!("{program}: {how}"));
        }
    }
    let programs = counted(built.len(), "test program");
    Verdict::from_findings(findings, format!("{programs}, {} left out", left_out.len()))
}

/// Installs valgrind if it is missing and the user is root on a system with `apt-get`; else the reason for doing without.
fn find_or_install() -> Result<(), String> {
    let is_there = || command::run(Command::new("valgrind").arg("--version"), Show::Never).succeeded();
    if is_there() {
        return Ok(());
    }
    let user = command::run(Command::new("id").arg("-u"), Show::Never);
    if user.stdout.trim() != "0" {
        return Err("valgrind is not installed, and only root may install it".into());
    }
    let mut install = Command::new("apt-get");
    install.args(["install", "--yes", "--no-install-recommends", "valgrind"]);
    let ran = command::run(&mut install, Show::Live);
    ran.ending
        .map_err(|how| format!("valgrind is not installed, and apt-get could not install it ({how})"))?;
    if is_there() { Ok(()) } else { Err("valgrind was installed, but does not run".into()) }
}
