//! Test programs, and modules of them, that the tools leave out, with the reasons. A single test that a tool cannot run says so where
//! it is written (`#[cfg_attr(miri, ignore = "…")]`), and shrinks its loops with `cfg!(miri)`.

use crate::executables::Executable;
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

/// A reason with the tests that it holds for: a test program by the name that cargo-nextest gives it, and a module of it. The program of
/// a crate's unit tests has the name of the crate; an empty module stands for the whole program.
struct LeftOut {
    tools: &'static [Tool],
    reason: &'static str,
    tests: &'static [(&'static str, &'static str)],
}

const LEFT_OUT: &[LeftOut] = &[
    LeftOut {
        tools: &[Miri, Tsan, Asan, Valgrind],
        reason: "runs the compiler, and nothing that it has compiled",
        tests: &[("convoke::it", "compile_fail"), ("convoke::it", "attributes::what_must_not_compile")],
    },
    LeftOut {
        tools: &[Miri],
        reason: "needs a kernel: sockets and epoll",
        tests: &[
            ("convoke-poll", ""),
            ("convoke-poll::it", ""),
            ("convoke-tokio::it", ""),
            ("convoke::it", "attributes"),
            ("convoke::it", "driven_context"),
            ("convoke::it", "network_examples"),
            ("convoke::it", "papers"),
            ("convoke::it", "random_readers"),
            ("convoke::it", "random_sockets"),
            ("convoke::it", "random_ways"),
            ("convoke::it", "resolver"),
            ("convoke::it", "runtime"),
            ("convoke::it", "server"),
            ("convoke::it", "server_program"),
            ("convoke::it", "services"),
            ("convoke::it", "sockets"),
        ],
    },
    LeftOut {
        tools: &[Miri],
        reason: "calls cryptography in assembly",
        tests: &[("convoke-tls::it", ""), ("convoke-runtimes::it", "quic")],
    },
    LeftOut {
        tools: &[Miri],
        reason: "has no unsafe code; most of what runs is hyper's, and the kernel's",
        tests: &[("convoke-http::it", "")],
    },
    LeftOut {
        tools: &[Miri],
        reason: "needs a kernel: signals, and processes that it starts",
        tests: &[("convoke::it", "main_program"), ("convoke::it", "signals")],
    },
    LeftOut {
        tools: &[Valgrind],
        reason: "takes longer than all others together; AddressSanitizer runs it",
        tests: &[
            ("convoke::it", "examples"),
            ("convoke::it", "random_graphs"),
            ("convoke::it", "simulated"),
            ("convoke-testing::it", "explore_stops"),
            ("convoke-task::it", "random_tasks"),
        ],
    },
    LeftOut {
        tools: &[Valgrind],
        reason: "has no unsafe code, and takes as long as all below it; AddressSanitizer runs it",
        tests: &[("convoke-http::it", "")],
    },
    LeftOut {
        tools: &[Miri],
        reason: "asserts that every part is stopped at every point; under Miri a few are",
        tests: &[("convoke-testing::it", "explore_inner_stops")],
    },
    LeftOut {
        tools: &[Valgrind],
        reason: "hangs: where descriptors run out valgrind takes a connection, closes it and reports that there was no capacity",
        tests: &[("convoke-poll::it", "descriptors_run_out")],
    },
    LeftOut {
        tools: &[Tsan, Asan],
        reason: "continues on other stacks, which the tool does not know; valgrind does",
        tests: &[("convoke-task::it", "depth::on_the_stack")],
    },
    LeftOut {
        tools: &[Tsan, Asan],
        reason: "measures memory, of which the tool takes more",
        tests: &[("convoke-http::it", "half_open"), ("convoke-http::it", "hostile::random_malformed")],
    },
    LeftOut {
        tools: &[Miri, Tsan, Asan, Valgrind],
        reason: "limits the address space, where the tool needs room of its own",
        tests: &[("convoke::it", "late_pool")],
    },
    LeftOut {
        tools: &[Tsan],
        reason: "simulates, on one thread",
        tests: &[("convoke::it", "simulated"), ("convoke-sim::it", "")],
    },
    LeftOut {
        tools: &[Tsan],
        reason: "steps through programs, on one thread",
        tests: &[
            ("convoke::it", "examples"),
            ("convoke-testing::it", "explore_inner_stops"),
            ("convoke-testing::it", "explore_stops"),
        ],
    },
];

/// A test program, or a module of one, that a tool leaves out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Left {
    pub(super) program: &'static str,
    pub(super) module: &'static str,
    pub(super) reason: &'static str,
}

impl Left {
    /// Returns the filter expression of cargo-nextest that matches it.
    pub(super) fn filter(self) -> String {
        let Self { program, module, .. } = self;
        if module.is_empty() {
            format!("binary_id({program})")
        } else {
            format!("(binary_id({program}) & test(/^{module}/))")
        }
    }
}

/// Returns what `tool` leaves out.
pub(super) fn by(tool: Tool) -> Vec<Left> {
    let lines = LEFT_OUT.iter().filter(|line| line.tools.contains(&tool));
    let lefts = lines.flat_map(|line| {
        line.tests.iter().map(|(program, module)| Left { program, module, reason: line.reason })
    });
    lefts.collect()
}

/// Prints what `tool` leaves out, and returns it.
pub(super) fn tell(tool: Tool) -> Vec<Left> {
    let left_out = by(tool);
    for Left { program, module, reason } in &left_out {
        println!("    left out: {program} {module}: {reason}");
    }
    left_out
}

/// Returns the name of a test program as it is listed here; `None` if it is none, or holds models.
pub(super) fn name_of(package: &Package, target: &Target) -> Option<String> {
    if target.is("lib") {
        Some(package.name.clone())
    } else if target.is("test") && target.name != "loom" {
        Some(format!("{}::{}", package.name, target.name))
    } else {
        None
    }
}

/// Returns the name of a test program that cargo has built.
pub(super) fn name_of_executable(executable: &Executable) -> String {
    let Executable { name, folder, .. } = executable;
    // The program of unit tests has the name of the library.
    if *name == folder.replace('-', "_") { folder.clone() } else { format!("{folder}::{name}") }
}

/// Fails if a program or a module is listed that does not exist.
pub(super) fn check(workspace: &Workspace) -> Result<(), String> {
    let all = workspace.packages.iter();
    let all = all.flat_map(|package| package.targets.iter().map(move |target| name_of(package, target)));
    let programs: Vec<_> = all.flatten().collect();
    for (program, module) in LEFT_OUT.iter().flat_map(|line| line.tests) {
        if !programs.iter().any(|other| other == program) {
            return Err(format!("sanitize/left_out.rs lists {program}, which is no test program"));
        }
        let file = module.split("::").next().unwrap_or_default();
        let folder = program.replace("::", "/tests/");
        let exists = |path: &String| {
            path.starts_with(&format!("{folder}/{file}.rs")) || path.starts_with(&format!("{folder}/{file}/"))
        };
        if !module.is_empty() && !workspace.files.iter().any(exists) {
            return Err(format!(
                "sanitize/left_out.rs lists {module} of {program}, which is no module of it"
            ));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_has_one_name_in_the_list_and_as_it_was_built() {
        let built = |folder: &str, name: &str| {
            name_of_executable(&Executable { name: name.into(), folder: folder.into(), path: "".into() })
        };
        assert_eq!((built("a-b", "a_b"), built("a-b", "it")), ("a-b".to_owned(), "a-b::it".to_owned()));
        let package = Package { name: "a-b".into(), ..Package::default() };
        let target = |name: &str, kind: &str| Target { name: name.into(), kinds: vec![kind.into()] };
        assert_eq!(name_of(&package, &target("a_b", "lib")), Some(built("a-b", "a_b")));
        assert_eq!(name_of(&package, &target("it", "test")), Some(built("a-b", "it")));
    }
}
