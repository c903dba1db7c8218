//! What the tools leave out, and why: whole test programs, by the name that cargo-nextest gives them. A single test that a
//! tool cannot run says so where it is written (`#[cfg_attr(miri, ignore = "…")]`), and shrinks its loops with `cfg!(miri)`.

use crate::workspace::{Package, Target, Workspace};

/// A tool with a list of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tool {
    Miri,
    Tsan,
    Asan,
    Valgrind,
}
use Tool::{Asan, Miri, Tsan, Valgrind};

/// A reason with the test programs that it holds for. A crate alone stands for its unit tests.
struct LeftOut {
    tools: &'static [Tool],
    reason: &'static str,
    programs: &'static [&'static str],
}

const LEFT_OUT: &[LeftOut] = &[
    LeftOut {
        tools: &[Miri, Tsan, Asan, Valgrind],
        reason: "runs the compiler, and nothing that it has compiled",
        programs: &["convoke-core::compile_fail", "convoke-exec::compile_fail"],
    },
    LeftOut {
        tools: &[Miri],
        reason: "needs a kernel: sockets and epoll",
        programs: &[
            "convoke-poll",
            "convoke-poll::allocations",
            "convoke-poll::descriptors_run_out",
            "convoke-poll::driver_contract",
            "convoke-poll::sockets",
            "convoke-poll::sources_that_go",
            "convoke-poll::waiting_again",
            "convoke::network_examples",
            "convoke::random_readers",
            "convoke::random_sockets",
            "convoke::runtime",
            "convoke::services",
            "convoke::sockets",
        ],
    },
    LeftOut {
        tools: &[Miri],
        reason: "needs a kernel: signals, and processes that it starts",
        programs: &["convoke::main_program", "convoke::signals"],
    },
    LeftOut {
        tools: &[Miri, Valgrind],
        reason: "takes longer than all others together; AddressSanitizer runs it",
        programs: &[
            "convoke::examples",
            "convoke::random_graphs",
            "convoke::simulated",
            "convoke-exec::explore_stops",
            "convoke-exec::random_tasks",
        ],
    },
    LeftOut {
        tools: &[Miri],
        reason: "tries every stop of every program, for longer than ten minutes; AddressSanitizer runs it",
        programs: &["convoke-exec::explore_inner_stops"],
    },
    LeftOut {
        tools: &[Valgrind],
        reason: "hangs: where descriptors run out valgrind takes a connection, closes it and reports that there was no room",
        programs: &["convoke-poll::descriptors_run_out"],
    },
    LeftOut {
        tools: &[Tsan],
        reason: "simulates, on one thread",
        programs: &[
            "convoke::simulated",
            "convoke-sim",
            "convoke-sim::chaos",
            "convoke-sim::checks",
            "convoke-sim::crash",
            "convoke-sim::crash_anywhere",
            "convoke-sim::disk",
            "convoke-sim::durability",
            "convoke-sim::explore",
            "convoke-sim::failures",
            "convoke-sim::hosts",
            "convoke-sim::network",
            "convoke-sim::seeds",
        ],
    },
    LeftOut {
        tools: &[Tsan],
        reason: "steps through programs, on one thread",
        programs: &["convoke::examples", "convoke-exec::explore_inner_stops", "convoke-exec::explore_stops"],
    },
];

/// The test programs that `tool` leaves out, each with the reason.
pub(super) fn by(tool: Tool) -> Vec<(&'static str, &'static str)> {
    let lines = LEFT_OUT.iter().filter(|line| line.tools.contains(&tool));
    lines.flat_map(|line| line.programs.iter().map(|program| (*program, line.reason))).collect()
}

/// Prints what `tool` leaves out, and returns it.
pub(super) fn tell(tool: Tool) -> Vec<(&'static str, &'static str)> {
    let left_out = by(tool);
    for (program, reason) in &left_out {
        println!("    left out: {program}: {reason}");
    }
    left_out
}

/// The name of a test program as it is listed here; `None` if it is none, or a model.
pub(super) fn name_of(package: &Package, target: &Target) -> Option<String> {
    if target.is("lib") {
        Some(package.name.clone())
    } else if target.is("test") && !target.name.starts_with("loom_") {
        Some(format!("{}::{}", package.name, target.name))
    } else {
        None
    }
}

/// Fails if a program is listed that is not there any more.
pub(super) fn check(workspace: &Workspace) -> Result<(), String> {
    let all = workspace.packages.iter();
    let all = all.flat_map(|package| package.targets.iter().map(move |target| name_of(package, target)));
    let programs: Vec<_> = all.flatten().collect();
    match LEFT_OUT
        .iter()
        .flat_map(|line| line.programs)
        .find(|program| !programs.iter().any(|it| it == *program))
    {
        Some(program) => Err(format!("sanitize/left_out.rs lists {program}, which is no test program")),
        None => Ok(()),
    }
}
