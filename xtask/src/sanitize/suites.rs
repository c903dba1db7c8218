//! Which tests a tool runs, in the words of cargo and cargo-nextest.

use super::left_out::{self, Left, Tool};
use crate::command::{self, Show};
use crate::nextest::{have_nextest, is_testing};
use crate::step::{Verdict, counted};
use crate::tally::Tally;
use crate::workspace::{self, Package, Target, Workspace};
use std::process::Command;

/// The crates with unsafe code, and those above, which drop what is in flight.
const CRATES: [&str; 17] = [
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
    "convoke-runtimes",
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

/// One test program of a crate.
pub(super) struct Program<'a> {
    /// The name by which `left_out` lists it.
    pub(super) name: String,
    package: &'a Package,
    kind: Programs,
}

impl Program<'_> {
    /// Returns the arguments that choose it, with the features of its crate for tests.
    pub(super) fn arguments(&self) -> Vec<String> {
        let mut arguments = choose(&[self.package]);
        arguments.extend(self.kind.arguments().iter().copied().map(str::to_owned));
        arguments
    }
}

/// Returns the programs of `tool`, crate by crate, from the bottom up.
pub(super) fn programs_of(workspace: &Workspace, tool: Tool) -> Vec<Program<'_>> {
    let left_out = left_out::by(tool);
    let package = |name: &str| workspace.packages.iter().find(|package| package.name == name);
    let all = CRATES.into_iter().filter_map(package).flat_map(|package| {
        let programs = package.targets.iter().filter_map(|target| {
            let name = left_out::name_of(package, target)?;
            Some(Program { name, package, kind: Programs::of_target(&target.name) })
        });
        programs.collect::<Vec<_>>()
    });
    let is_run = |program: &Program<'_>| {
        !left_out.iter().any(|left| left.program == program.name && left.module.is_empty())
    };
    all.filter(is_run).collect()
}

/// Returns the arguments that choose the integration tests of one crate.
pub(super) fn integration_tests_of(workspace: &Workspace, name: &str) -> Vec<String> {
    let packages: Vec<_> = workspace.packages.iter().filter(|package| package.name == name).collect();
    let mut arguments = choose(&packages);
    arguments.extend(Programs::Integration.arguments().iter().copied().map(str::to_owned));
    arguments
}

/// Returns the arguments by which the test harness of this program skips the modules that are left out of it. The harness looks for
/// the words anywhere in the path of a test.
pub(super) fn skips(left_out: &[Left], program: &str) -> Vec<String> {
    let modules = left_out.iter().filter(|left| left.program == program).map(|left| left.module);
    let modules = modules.filter(|module| !module.is_empty());
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
    fn a_module_is_skipped_in_its_own_program_alone() {
        let left = |program, module| Left { program, module, reason: "" };
        let left_out = [left("a::it", "sockets"), left("b", "clock"), left("c::it", "")];
        assert_eq!(skips(&left_out, "a::it"), ["--skip", "sockets::"]);
        assert_eq!(skips(&left_out, "b"), ["--skip", "clock::"]);
        // A module of the same name in another program is run.
        assert!(skips(&left_out, "c::it").is_empty() && skips(&left_out, "b::it").is_empty());
    }
}
