//! Which tests a tool runs, in the words of cargo and cargo-nextest.

use super::left_out::{self, Left, Tool};
use crate::command::{self, Show};
use crate::nextest::{have_nextest, is_testing};
use crate::step::{Verdict, counted};
use crate::tally::Tally;
use crate::workspace::{self, Package, Target, Workspace};
use std::process::Command;

/// The crates with unsafe code, and those above, which drop what is in flight.
const CRATES: [&str; 16] = [
    "convoke-core",
    "convoke-sync",
    "convoke-exec",
    "convoke-task",
    "convoke-sender",
    "convoke-inspect",
    "convoke-testing",
    "convoke-io",
    "convoke-net",
    "convoke-poll",
    "convoke-sim",
    "convoke-tls",
    "convoke-http",
    "convoke-tokio",
    "convoke-postgres",
    "convoke",
];

/// Turns off the cache of task frames: memory that is kept for the next task would hide an access after its end.
pub(super) const NO_FRAME_CACHE: (&str, &str) = ("CONVOKE_FRAME_CACHE", "0");

/// The kinds of test programs. Models are not among them: without loom they are ordinary tests of one schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Programs {
    /// The unit tests of each crate.
    Unit,
    /// The program `it` of each crate.
    Integration,
}

impl Programs {
    pub(super) const ALL: [Self; 2] = [Self::Unit, Self::Integration];

    /// Returns the kind of a program that cargo names like this.
    pub(super) fn of_target(name: &str) -> Self {
        if name == "it" { Self::Integration } else { Self::Unit }
    }

    /// Returns the arguments by which cargo chooses programs of this kind.
    fn arguments(self) -> &'static [&'static str] {
        match self {
            Self::Unit => &["--lib"],
            Self::Integration => &["--test", "it"],
        }
    }
}

/// Returns the arguments that choose the tests of `tool`: the crates, with their features for tests, and their programs of
/// these kinds.
pub(super) fn tests_of(workspace: &Workspace, tool: Tool, programs: &[Programs]) -> Vec<String> {
    let left_out = left_out::by(tool);
    let is_run = |package: &Package, target: &&Target| {
        let program = left_out::name_of(package, target);
        program.is_some_and(|program| {
            !left_out.iter().any(|left| left.program == program && left.module.is_empty())
        })
    };
    let is_wanted = |package: &&Package| {
        let mut targets = package.targets.iter();
        CRATES.contains(&package.name.as_str()) && targets.any(|target| is_run(package, &target))
    };
    let packages: Vec<_> = workspace.packages.iter().filter(is_wanted).collect();
    let mut arguments = choose(&packages);
    arguments.extend(programs.iter().flat_map(|kind| kind.arguments()).copied().map(str::to_owned));
    arguments
}

/// Returns the arguments that choose the integration tests of one crate.
pub(super) fn integration_tests_of(workspace: &Workspace, name: &str) -> Vec<String> {
    let packages: Vec<_> = workspace.packages.iter().filter(|package| package.name == name).collect();
    let mut arguments = choose(&packages);
    arguments.extend(Programs::Integration.arguments().iter().copied().map(str::to_owned));
    arguments
}

/// Returns the arguments by which the test harness of programs of this kind skips the modules that are left out. The harness looks
/// for the words anywhere in the path of a test: modules of the other kind with such a name would be skipped, too.
pub(super) fn skips(left_out: &[Left], programs: Programs) -> Vec<String> {
    let is_in = |left: &&Left| {
        let target = left.program.rsplit("::").next().unwrap_or_default();
        Programs::of_target(target) == programs
    };
    let modules = left_out.iter().filter(is_in).map(|left| left.module).filter(|module| !module.is_empty());
    modules.flat_map(|module| ["--skip".to_owned(), format!("{module}::")]).collect()
}

fn choose(packages: &[&Package]) -> Vec<String> {
    let mut arguments = workspace::select(packages.iter().copied());
    arguments.extend(workspace::features(packages.iter().copied(), is_testing));
    arguments
}

/// Runs `command`, a `cargo nextest run …`, over all that is not left out for `tool`, and says what is. Each test has a
/// process of its own: some look at all tasks of their process, and what is found has the name of the test.
pub(super) fn run(workspace: &Workspace, command: &mut Command, tool: Tool) -> Verdict {
    if let Err(complaint) = have_nextest(workspace) {
        return Verdict::failed(complaint);
    }
    let left_out = left_out::tell(tool);
    let filter: Vec<_> = left_out.iter().map(|left| left.filter()).collect();
    let filter = format!("not ({})", filter.join(" + "));
    command.env(NO_FRAME_CACHE.0, NO_FRAME_CACHE.1).args(tests_of(workspace, tool, &Programs::ALL));
    let ran = command::run(command.args(["--no-fail-fast", "-E", &filter]), Show::Live);
    let tally = Tally::of_nextest(&ran.stderr);
    verdict(ran.ending, tally, &counted(left_out.len(), "program or module"))
}

/// How it went; `rest` says what was left out.
pub(super) fn verdict(ending: Result<(), String>, tally: Tally, rest: &str) -> Verdict {
    let Tally { passed, failed } = tally;
    match ending {
        Ok(()) if passed == 0 => Verdict::failed("no test was run"),
        Ok(()) => Verdict::Passed(format!("{passed} passed, {rest} left out")),
        Err(how) => Verdict::failed(format!("{passed} passed, {failed} failed ({how})")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_module_is_skipped_in_programs_of_its_kind() {
        let left = |program, module| Left { program, module, reason: "" };
        let left_out = [left("a::it", "sockets"), left("b", "clock"), left("c::it", "")];
        assert_eq!(skips(&left_out, Programs::Integration), ["--skip", "sockets::"]);
        assert_eq!(skips(&left_out, Programs::Unit), ["--skip", "clock::"]);
    }
}
