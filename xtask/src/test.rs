//! `cargo xtask test`: everything that can be run, on a machine that has stable Rust and a package registry.

use crate::arguments::Arguments;
use crate::command::{self, Show};
use crate::executables::{self, Executable};
use crate::models::{self, Depth};
use crate::nextest::{counted_verdict, have_nextest, run_nextest};
use crate::sanitize;
use crate::services;
use crate::step::{self, Step, Verdict};
use crate::tally::Tally;
use crate::toolchain::{self, Release};
use crate::workspace::Workspace;
use serde_json::Value;
use std::cell::RefCell;
use std::process::Command;
use std::time::Duration;

const BENCH: &str = "convoke-bench";
/// An example is a short story: one that takes this long hangs.
const EXAMPLE_LIMIT: Duration = Duration::from_secs(120);
/// One scenario that needs nothing, and those whose servers and load are processes of their own.
const BENCH_SCENARIOS: [&str; 3] = ["inline_graph", "tcp_echo_64_50", "udp_echo"];
/// The quick run of these, on a slow machine.
const BENCH_LIMIT: Duration = Duration::from_secs(180);

/// Runs the steps; true if none failed. The last line printed is `<N> passed, <M> failed`.
pub(crate) fn run(workspace: &Workspace, arguments: &Arguments) -> Result<bool, String> {
    let tally = RefCell::new(Tally::default());
    let counted = |work: fn(&Workspace, &mut Tally) -> Verdict| {
        let tally = &tally;
        move || count(tally, |own| work(workspace, own))
    };
    // Filled below, when it is known which steps are to run.
    let (miri_short, installing) = (RefCell::new(None), RefCell::new(None));
    let steps = vec![
        Step::new("tests", "unit and integration tests", counted(tests)),
        Step::new("doctests", "the examples in documentation and README", counted(doctests)),
        Step::new("loom", "races, enumerated", counted(loom)),
        Step::new(
            "miri",
            "tasks and scopes under Miri, if it is installed; begun beside the first step",
            || {
                let started = miri_short.take().expect("it was started with the first step");
                count(&tally, |own: &mut Tally| sanitize::Short::finish(started, own))
            },
        ),
        Step::new("examples", "every example, run", counted(examples)),
        Step::new(
            "services",
            "tests with PostgreSQL, Redis, NATS, nginx, Chromium, curl, wrk, h2load; installs them if it may, beside the first step",
            || {
                let installing = installing.take().expect("it was started with the first step");
                count(&tally, |own: &mut Tally| services::run(workspace, installing, own))
            },
        ),
        // It has every peer, whose build takes longer than all it shows: that it compiles, `tidy` shows.
        Step::new("bench", "the bench builds, and one quick run answers; only by name", counted(bench))
            .if_asked_for(),
        Step::new("msrv", "the oldest Rust we promise compiles everything", counted(msrv)),
    ];
    let Some(steps) = step::select(steps, arguments)? else { return Ok(true) };
    let is_run = |step: &str| arguments.only.is_empty() || arguments.only.iter().any(|name| name == step);
    if is_run("miri") {
        *miri_short.borrow_mut() = Some(sanitize::start_miri_short(workspace));
    }
    if is_run("services") {
        *installing.borrow_mut() = Some(services::Installing::start());
    }
    let passed = step::run("test", steps);
    let Tally { passed: good, failed: bad } = *tally.borrow();
    println!("\n{good} passed, {bad} failed");
    Ok(passed)
}

/// Does a step's work and adds what it has counted to `tally`.
fn count(tally: &RefCell<Tally>, work: impl FnOnce(&mut Tally) -> Verdict) -> Verdict {
    let mut own = Tally::default();
    let verdict = work(&mut own);
    // A step may fail without a failing test: a build, an example. The closing line must not look green.
    if matches!(verdict, Verdict::Failed(_)) && own.failed == 0 {
        own.failed = 1;
    }
    *tally.borrow_mut() += own;
    verdict
}

fn tests(workspace: &Workspace, tally: &mut Tally) -> Verdict {
    if let Err(complaint) = have_nextest(workspace) {
        return Verdict::failed(complaint);
    }
    let mut command = command::cargo(&workspace.root);
    command.args(["nextest", "run", "--no-fail-fast"]).args(workspace.everything());
    run_nextest(&mut command, tally)
}

fn doctests(workspace: &Workspace, tally: &mut Tally) -> Verdict {
    let mut command = command::cargo(&workspace.root);
    command.args(["test", "--doc", "--no-fail-fast"]).args(workspace.everything());
    let ran = command::run(&mut command, Show::Live);
    *tally = Tally::of_harness(&ran.stdout);
    counted_verdict(ran, *tally)
}

fn loom(workspace: &Workspace, tally: &mut Tally) -> Verdict {
    if let Err(complaint) = have_nextest(workspace) {
        return Verdict::failed(complaint);
    }
    run_nextest(&mut models::run(workspace, Depth::Short), tally)
}

fn examples(workspace: &Workspace, _: &mut Tally) -> Verdict {
    let targets = workspace.default_members().flat_map(|package| &package.targets);
    let examples: Vec<_> = targets.filter(|target| target.is("example")).collect();
    if examples.is_empty() {
        return Verdict::Skipped("there are no examples".to_owned());
    }
    let built = match build(workspace, "--examples") {
        Ok(built) => built,
        Err(complaint) => return Verdict::failed(complaint),
    };
    let mut findings = Vec::new();
    for example in &examples {
        let Some(executable) = built.iter().find(|executable| executable.name == example.name) else {
            findings.push(format!("{} was not built", example.name));
            continue;
        };
        let mut command = Command::new(&executable.path);
        let ran = command::run_within(EXAMPLE_LIMIT, command.current_dir(&workspace.root), Show::OnFailure);
        match ran.ending {
            Ok(()) => println!("    {} ran", example.name),
            Err(how) => findings.push(format!("{}: {how}", example.name)),
        }
    }
    Verdict::from_findings(findings, step::counted(examples.len(), "example"))
}

fn bench(workspace: &Workspace, _: &mut Tally) -> Verdict {
    let built = match build(workspace, "--bins") {
        Ok(built) => built,
        Err(complaint) => return Verdict::failed(complaint),
    };
    let Some(executable) = built.iter().find(|executable| executable.name == BENCH) else {
        return Verdict::failed(format!("{BENCH} builds no program of that name"));
    };
    let mut command = Command::new(&executable.path);
    command.args(BENCH_SCENARIOS).args(["--json", "--repeat", "1", "--quick"]).current_dir(&workspace.root);
    let ran = command::run_within(BENCH_LIMIT, &mut command, Show::OnFailure);
    match ran.ending {
        Err(how) => Verdict::failed(format!("the smoke run ended with {how}")),
        Ok(()) if !reports_convoke(&ran.stdout) => {
            print!("{}{}", ran.stdout, ran.stderr);
            Verdict::failed("the smoke run printed no JSON line with \"peer\": \"convoke\"")
        }
        Ok(()) => Verdict::Passed(String::new()),
    }
}

/// Builds programs of this kind with the features of the tests, which have built the examples already, and without optimisation: it
/// only matters that they run.
fn build(workspace: &Workspace, kind: &str) -> Result<Vec<Executable>, String> {
    let mut command = command::cargo(&workspace.root);
    executables::build(command.args(["build", kind]).args(workspace.everything()))
}

/// True if a line of the bench's output is an object of the peer `convoke`.
fn reports_convoke(output: &str) -> bool {
    let objects = output.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    objects.into_iter().any(|object| object["peer"] == "convoke")
}

fn msrv(workspace: &Workspace, _: &mut Tally) -> Verdict {
    let (promised, running) = match (toolchain::promised(workspace), toolchain::running(workspace)) {
        (Ok(promised), Ok(running)) => (promised, running),
        (Err(complaint), _) | (_, Err(complaint)) => return Verdict::failed(complaint),
    };
    let oldest = Release::parse(&promised);
    if oldest == Some(running.release) {
        return Verdict::Skipped(format!(
            "the running Rust is {promised}, all of the above was compiled with it"
        ));
    }
    let Some(toolchain) = toolchain::installed(workspace, |name| Release::parse(name) == oldest) else {
        return Verdict::Skipped(format!("Rust {promised} is not installed"));
    };
    let mut command = command::cargo_of(&toolchain, &workspace.root);
    match command::run(command.args(["check", "--workspace"]), Show::Live).ending {
        Ok(()) => Verdict::Passed(toolchain),
        Err(how) => Verdict::failed(format!("does not compile with {toolchain} ({how})")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bench_must_speak_for_convoke() {
        assert!(reports_convoke("a headline\n{\"peer\":\"convoke\",\"ns\":2.6}\n"));
        assert!(!reports_convoke("{\"peer\":\"tokio\"}\nconvoke\n"));
        assert!(!reports_convoke(""));
    }
}
