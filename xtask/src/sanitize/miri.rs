//! Miri: the whole of what it can run, and a short selection for every visit to the workshop.

use super::left_out::{self, Tool};
use super::nightly;
use super::suites::{self, NO_FRAME_CACHE};
use crate::command::{self, Background, Show};
use crate::step::{Verdict, counted};
use crate::tally::Tally;
use crate::workspace::Workspace;
use std::process::Command;
use std::time::Instant;

/// Tree Borrows is the model of aliasing that the code is checked against. Without isolation tests have a clock and read the
/// environment. A backtrace of a panic takes minutes to interpret. Leaks are for the other tools to find: here the statics of
/// crossbeam-epoch, and a thread that still runs when a program ends, would count as such.
const FLAGS: &str =
    "-Zmiri-tree-borrows -Zmiri-disable-isolation -Zmiri-env-set=RUST_BACKTRACE=0 -Zmiri-ignore-leaks";

/// The crate of the short selection, and the modules of its tests that show the most in less than three minutes of one core:
/// children, handles on both ends, stops from all sides, wakes from the owner thread and from others. `task::` would take
/// another minute.
const SHORT: (&str, [&str; 7]) = (
    "convoke-task",
    ["scope::", "task_edges::", "wake_locally::", "--skip", "local_scope::", "--skip", "blocking_scope::"],
);

/// Every suite that needs no kernel, program by program: a run that is cut shows how far it came. What Miri finds ends the
/// program that it finds it in, and the next one begins.
pub(super) fn whole(workspace: &Workspace) -> Verdict {
    match nightly::find_or_install(workspace) {
        Err(reason) => Verdict::Skipped(reason),
        Ok(toolchain) => {
            let left_out = left_out::tell(Tool::Miri);
            let rest = counted(left_out.len(), "program or module");
            let (mut tally, mut failed) = (Tally::default(), Vec::new());
            let programs = suites::programs_of(workspace, Tool::Miri);
            for (index, program) in programs.iter().enumerate() {
                let started = Instant::now();
                let mut command =
                    miri(&toolchain, workspace, program.arguments(), suites::skips(&left_out, &program.name));
                let ran = command::run(&mut command, Show::Live);
                let own = Tally::of_harness(&ran.stdout);
                let (name, seconds) = (&program.name, started.elapsed().as_secs());
                let Tally { passed, failed: not } = own;
                println!(
                    "--- {}/{} {name}: {passed} passed, {not} failed, {seconds} s",
                    index + 1,
                    programs.len()
                );
                tally += own;
                failed.extend(ran.ending.err().map(|how| format!("{name}: {how}")));
            }
            suites::verdict(if failed.is_empty() { Ok(()) } else { Err(failed.join("; ")) }, tally, &rest)
        }
    }
}

/// The short selection, under way.
pub(crate) struct Short(Result<Background, String>);

/// Starts the tests of tasks and scopes, if the toolchain is there. Does not install it: `cargo xtask test` needs no network but for
/// crates. Miri has one thread, so the other steps go on beside it.
pub(crate) fn start_short(workspace: &Workspace) -> Short {
    let toolchain =
        nightly::find(workspace).map_err(|reason| format!("{reason}; `cargo xtask sanitize` installs it"));
    Short(toolchain.map(|toolchain| {
        let (name, modules) = SHORT;
        let tests = suites::integration_tests_of(workspace, name);
        let chosen = modules.map(str::to_owned).to_vec();
        command::run_in_background(&mut miri(&toolchain, workspace, tests, chosen))
    }))
}

impl Short {
    /// Waits for the end of the tests.
    pub(crate) fn finish(self, tally: &mut Tally) -> Verdict {
        match self.0 {
            Err(reason) => Verdict::Skipped(reason),
            Ok(background) => {
                let ran = background.finish();
                *tally = Tally::of_harness(&ran.stdout);
                suites::verdict(ran.ending, *tally, "the rest")
            }
        }
    }
}

/// Returns the command that runs tests, one after the other in the process of their program: Miri compiles a program again each time
/// it starts it, which takes longer than most tests. What `MIRIFLAGS` says is added: `-Zmiri-seed=7` tries another schedule.
fn miri(toolchain: &str, workspace: &Workspace, tests: Vec<String>, of_them: Vec<String>) -> Command {
    let mut command: Command = command::cargo_of(toolchain, &workspace.root);
    let more = std::env::var("MIRIFLAGS").unwrap_or_default();
    command.env("MIRIFLAGS", format!("{FLAGS} {more}").trim_end()).env(NO_FRAME_CACHE.0, NO_FRAME_CACHE.1);
    command
        .args(["miri", "test", "--no-fail-fast"])
        .args(tests)
        .args(["--", "--test-threads=1", "-Zunstable-options", "--report-time"])
        .args(of_them);
    command
}
