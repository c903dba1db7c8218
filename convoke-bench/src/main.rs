//! Benchmarks of Convoke and its peers: the same work, in one process, by turns.
//!
//! - [`arguments`]: the command line.
//! - [`scenario`]: what is measured; one file per family of scenarios below it.
//! - [`own`]: Convoke's own operations, driven by hand.
//! - [`peer`]: the set-up of each peer's runtime, once, for all scenarios.
//! - [`echo`]: servers and their load, in separate processes.
//! - [`measure`]: calibration, timed samples by turns, the counting sample.
//! - [`statistics`]: median and spread.
//! - [`allocator`]: the global allocator, which forwards and, on request, counts.
//! - [`instructions`]: instructions per op, by running this program under callgrind.
//! - [`report`] and [`progress`]: the results, and the progress meanwhile.

mod allocator;
mod arguments;
mod echo;
mod instructions;
mod measure;
mod own;
mod peer;
mod progress;
mod report;
mod scenario;
mod statistics;

use std::process::{Command, ExitCode};

use arguments::{Action, Options};
use echo::Role;
use progress::Progress;
use scenario::Scenario;

#[global_allocator]
static GLOBAL: allocator::Switch = allocator::Switch;

fn main() -> ExitCode {
    // Before anything else: listing the contestants of the scenarios starts threads, and a server must have
    // only one.
    if let Some(role) = Role::asked_for(std::env::args().skip(1)) {
        return role.run();
    }
    let scenarios = scenario::all();
    let names: Vec<&str> = scenarios.iter().map(|scenario| scenario.name).collect();
    let action = match arguments::parse(std::env::args().skip(1), &names) {
        Ok(action) => action,
        Err(problem) => {
            eprintln!("convoke-bench: {problem}");
            return ExitCode::from(2);
        }
    };
    match action {
        Action::Help => print!("{}", arguments::USAGE),
        Action::List => report::list(&scenarios),
        Action::RunOps { scenario, peer, ops } => return run_ops(&scenarios, &scenario, &peer, ops),
        Action::Measure(options) => return measure_all(&scenarios, &options),
    }
    ExitCode::SUCCESS
}

fn measure_all(scenarios: &[Scenario], options: &Options<'_>) -> ExitCode {
    if let Some(wanted) = options.allocator
        && wanted != allocator::backend()
    {
        return start_again_with(wanted);
    }
    if options.instructions && !instructions::available() {
        eprintln!("convoke-bench: valgrind is not on the PATH; instructions stay unknown");
    }
    let mut progress = Progress::new();
    if !options.json {
        report::preamble(options);
    }
    for scenario in scenarios.iter().filter(|scenario| options.scenarios.contains(&scenario.name)) {
        progress.begin(scenario.name);
        let mut measured = measure::measure(scenario, &options.plan, &mut progress);
        if options.instructions && instructions::available() {
            for row in &mut measured {
                progress.step(row.peer, "instructions");
                row.instructions_per_op = instructions::per_op(scenario, row.peer, row.ops_per_sample);
            }
        }
        progress.end();
        if options.json {
            report::json(scenario, &measured);
        } else {
            report::table(scenario, &measured);
        }
    }
    ExitCode::SUCCESS
}

/// Restarts the program with another allocator, because a process cannot change it after its first
/// allocation.
fn start_again_with(wanted: allocator::Backend) -> ExitCode {
    let child = std::env::current_exe().and_then(|program| {
        Command::new(program)
            .args(std::env::args_os().skip(1))
            .env(allocator::VARIABLE, wanted.name())
            .status()
    });
    match child {
        Ok(status) => ExitCode::from(status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(1)),
        Err(problem) => {
            eprintln!("convoke-bench: cannot start again with allocator {}: {problem}", wanted.name());
            ExitCode::FAILURE
        }
    }
}

/// Runs one contestant for callgrind: a warm-up, then `ops` operations.
fn run_ops(scenarios: &[Scenario], name: &str, peer: &str, ops: u64) -> ExitCode {
    let Some((scenario, contestant)) =
        scenarios.iter().find(|scenario| scenario.name == name).and_then(|scenario| {
            scenario.contestants.iter().find(|entry| entry.peer == peer).map(|entry| (scenario, entry))
        })
    else {
        eprintln!("convoke-bench: no contestant {peer} in scenario {name}");
        return ExitCode::from(2);
    };
    let mut contestant = (contestant.set_up)();
    contestant.run(scenario.whole_batches(1));
    contestant.run(scenario.whole_batches(ops));
    ExitCode::SUCCESS
}
