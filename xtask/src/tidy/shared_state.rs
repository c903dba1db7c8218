//! Threads share nothing that loom cannot see: atomics, locks and cells come from the shim, `convoke_core::raw::sync`.
//! Exceptions are listed here, with their reasons.

use crate::lexer::{self, Kind};
use crate::step::{Verdict, counted};
use crate::workspace::Workspace;

/// The shim itself.
const SHIM: &str = "convoke-core/src/sync.rs";

/// Where the rule holds: what users run. Tests, the tools for tests and the workshop may use what they like.
const SOURCES: [&str; 16] = [
    "convoke-core/src/",
    "convoke-sync/src/",
    "convoke-exec/src/",
    "convoke-task/src/",
    "convoke-sender/src/",
    "convoke-inspect/src/",
    "convoke-io/src/",
    "convoke-net/src/",
    "convoke-poll/src/",
    "convoke-sim/src/",
    "convoke-tls/src/",
    "convoke-http/src/",
    "convoke-tokio/src/",
    "convoke-runtimes/src/",
    "convoke-postgres/src/",
    "convoke/src/",
];
const TOOLS_FOR_TESTS: &str = "/testing/";

/// Names of `std::sync` that are no shared state of their own. An `Arc` orders its own counts, and loom's cannot hold a
/// trait object; code that decides by a count uses the `Arc` of the shim. A guard comes from a lock.
const HARMLESS: [&str; 8] = [
    "Arc",
    "LockResult",
    "MutexGuard",
    "PoisonError",
    "RwLockReadGuard",
    "RwLockWriteGuard",
    "TryLockError",
    "Weak",
];

/// Names of `std::thread` for waiting.
const PARKING: [&str; 3] = ["park", "park_timeout", "unpark"];

/// Files that use something of `std`'s all the same.
struct Exception {
    reason: &'static str,
    /// The names, as `std` spells them, separated by blanks; and the file.
    uses: &'static [(&'static str, &'static str)],
}

const EXCEPTIONS: &[Exception] = &[
    Exception {
        reason: "A static of the process. It outlives models, which loom's may not; under its lock, or once it is set, \
            nothing is left to order.",
        uses: &[
            ("OnceLock", "convoke-sender/src/awaiting/inline.rs"),
            ("OnceLock", "convoke-core/src/frames/recycling/cache.rs"),
            ("Mutex atomic", "convoke-core/src/frames/recycling/depot.rs"),
            ("OnceLock", "convoke-task/src/blocking/pool.rs"),
            ("RwLock", "convoke-task/src/blocking/overdue.rs"),
            ("RwLock", "convoke-task/src/cleanup/problem.rs"),
            ("OnceLock", "convoke-inspect/src/diagnosis/in_tests.rs"),
            ("Mutex", "convoke-exec/src/pool/port.rs"),
            ("Mutex", "convoke-task/src/task/many_wakers.rs"),
            ("OnceLock", "convoke-net/src/net/resolver/names.rs"),
            ("Mutex", "convoke-net/src/signal/process/mod.rs"),
            ("Mutex mpsc", "convoke-net/src/signal/process/windows.rs"),
            ("Mutex", "convoke-sim/src/sim/crashed.rs"),
            ("Mutex", "convoke-core/src/stop/reason_code.rs"),
        ],
    },
    Exception {
        reason: "A static counter whose numbers only have to differ, or a static that a thread compares with itself.",
        uses: &[
            ("atomic", "convoke-core/src/executor/owner_thread.rs"),
            ("atomic", "convoke-core/src/frame/kept.rs"),
        ],
    },
    Exception {
        reason: "What diagnosis shows: compared and printed, never followed. Models have a twin without it.",
        uses: &[
            ("atomic", "convoke-core/src/this_thread.rs"),
            ("Mutex atomic", "convoke-sync/src/ledger/mod.rs"),
            ("Mutex atomic", "convoke-core/src/watching/threads.rs"),
            ("atomic", "convoke-core/src/watching/mod.rs"),
            ("mpsc", "convoke-inspect/src/diagnosis/watchdog.rs"),
        ],
    },
    Exception {
        reason: "A header at the address of its owner, or a node at a known distance: loom's cell begins with its own state. \
            What is in a header are the shim's atomics; a node is guarded by the lock of its list.",
        uses: &[
            ("UnsafeCell", "convoke-core/src/executor/owner_thread.rs"),
            ("UnsafeCell", "convoke-core/src/stop/callback.rs"),
            ("UnsafeCell", "convoke-exec/src/view.rs"),
        ],
    },
    Exception {
        reason: "A word that may hold an executor of the user's, with cells of its own; it is not written to as a cell.",
        uses: &[("UnsafeCell", "convoke-core/src/executor/erased.rs")],
    },
    Exception {
        reason: "Asked for the layout of what is in it, and neither read nor written.",
        uses: &[("UnsafeCell", "convoke-core/src/frames/frame_box.rs")],
    },
    Exception {
        reason: "A list of types, of which none is used.",
        uses: &[("Mutex OnceLock RwLock", "convoke-core/src/failure/body_output.rs")],
    },
    Exception {
        reason: "A value that is set once and orders itself. Nobody waits by the cell, and loom has none.",
        uses: &[
            ("OnceLock", "convoke-exec/src/pool/port.rs"),
            ("OnceLock", "convoke-sync/src/once_cell.rs"),
            ("OnceLock", "convoke-net/src/net/resolver/lookup.rs"),
            ("OnceLock", "convoke-sim/src/world/trace.rs"),
        ],
    },
    Exception {
        reason: "Threads of the system that no model has: of the blocking pool, of timers, of a runtime's contexts.",
        uses: &[
            ("Condvar Mutex", "convoke-task/src/blocking/threads.rs"),
            ("Mutex", "convoke-task/src/blocking/threads_of_a_model.rs"),
            ("Mutex", "convoke-task/src/launch/leaked_root.rs"),
            ("OnceLock park park_timeout unpark", "convoke-exec/src/time/fallback.rs"),
        ],
    },
    Exception {
        reason: "Memory of a task that its poller alone writes; the task's state, which loom sees, says when others may read it.",
        uses: &[
            ("UnsafeCell", "convoke-task/src/task/header.rs"),
            ("UnsafeCell", "convoke-task/src/task/cold.rs"),
            ("UnsafeCell", "convoke-task/src/task/spawn_site.rs"),
        ],
    },
];

pub(super) fn check(workspace: &Workspace) -> Verdict {
    let in_scope = |path: &str| {
        SOURCES.iter().any(|source| path.starts_with(source))
            && !path.contains(TOOLS_FOR_TESTS)
            && !path.ends_with("/tests.rs")
            && path != SHIM
    };
    let (mut findings, mut met, mut files) = (Vec::new(), Vec::new(), 0);
    for (path, source) in workspace.rust_files().filter(|(path, _)| in_scope(path)) {
        files += 1;
        for (line, name) in uses(&source) {
            match exception(path, &name) {
                Some(exception) => met.push(exception),
                None => findings.push(format!(
                    "{path}:{line}: `{name}` of std is hidden from loom; take it from `convoke_core::raw::sync`"
                )),
            }
        }
    }
    for exception in all_exceptions().filter(|exception| !met.contains(exception)) {
        let (name, path) = exception;
        findings.push(format!(
            "xtask/src/tidy/shared_state.rs lists `{name}` in {path}, which is not there any more"
        ));
    }
    Verdict::from_findings(findings, counted(files, "file"))
}

/// The exceptions, one for each name in each file.
fn all_exceptions() -> impl Iterator<Item = (&'static str, &'static str)> {
    let uses = EXCEPTIONS.iter().flat_map(|exception| {
        debug_assert!(!exception.reason.is_empty());
        exception.uses
    });
    uses.flat_map(|(names, path)| names.split(' ').map(move |name| (name, *path)))
}

fn exception(path: &str, name: &str) -> Option<(&'static str, &'static str)> {
    all_exceptions().find(|exception| *exception == (name, path))
}

/// Returns the names of `std` in a file that threads can share, with their lines. Unit tests, which come last in a file, do not count.
fn uses(source: &str) -> Vec<(usize, String)> {
    let code = lexer::keep(source, &[Kind::Code]);
    let code = lexer::before_tests(&code);
    let mut found = Vec::new();
    let mut add = |at: usize, name: &str| {
        found.push((code[..at].matches('\n').count() + 1, name.to_owned()));
    };
    for path in ["std::sync", "core::sync"] {
        for (at, names) in named_after(code, path) {
            names.iter().filter(|name| !HARMLESS.contains(name)).for_each(|name| add(at, name));
        }
    }
    // By its last part: some files import `core::cell` for the cell that is not the shim's.
    for (at, names) in named_after(code, "cell") {
        names.iter().filter(|name| **name == "UnsafeCell").for_each(|name| add(at, name));
    }
    if code.contains("use std::thread") || code.contains("std::thread::park") {
        for (line, word) in lexer::words(code).filter(|(_, word)| PARKING.contains(word)) {
            found.push((line, word.to_owned()));
        }
    }
    found
}

/// The names that follow `path` and two colons: one, or all of a list in braces, each by its first word.
fn named_after<'a>(code: &'a str, path: &'a str) -> impl Iterator<Item = (usize, Vec<&'a str>)> {
    let is_whole =
        |at: &usize| !code[..*at].ends_with(|letter: char| letter == '_' || letter.is_alphanumeric());
    code.match_indices(path).map(|(at, _)| at).filter(is_whole).filter_map(move |at| {
        let rest = &code[at + path.len()..];
        // The module by itself can lead to anything.
        if rest.starts_with(';') {
            return Some((at, vec!["self"]));
        }
        let rest = rest.strip_prefix("::")?;
        let Some(list) = rest.strip_prefix('{') else {
            return lexer::words(rest).next().map(|(_, name)| (at, vec![name]));
        };
        Some((at, lexer::first_words(list)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(source: &str) -> Vec<String> {
        uses(source).into_iter().map(|(_, name)| name).collect()
    }

    #[test]
    fn what_threads_can_share_is_found_and_the_rest_is_not() {
        assert_eq!(names("use std::sync::atomic::{AtomicBool, Ordering};"), ["atomic"]);
        assert_eq!(names("static NEXT: core::sync::atomic::AtomicU32 = x;"), ["atomic"]);
        assert_eq!(
            names("use std::sync::{Arc, Mutex, PoisonError, mpsc::{self, Sender}};"),
            ["Mutex", "mpsc"]
        );
        assert_eq!(names("use core::cell::{Cell, UnsafeCell};"), ["UnsafeCell"]);
        assert_eq!(names("use core::cell;\nstruct A(cell::UnsafeCell<u8>);"), ["UnsafeCell"]);
        assert_eq!(names("use std::thread;\nfn f() { thread::park() }"), ["park"]);
        assert!(names("use std::sync::Arc;\nuse std::thread;\n// std::sync::Mutex").is_empty());
        assert!(names("use convoke_core::raw::sync::{Mutex, UnsafeCell, atomic, thread::park};").is_empty());
    }

    #[test]
    fn the_modules_themselves_are_found_too() {
        assert_eq!(names("use std::sync;"), ["self"]);
        assert_eq!(names("use std::sync::{self, Arc};"), ["self"]);
    }

    #[test]
    fn unit_tests_may_use_what_they_like() {
        let source = "use std::sync::OnceLock;\n\n#[cfg(test)]\nmod tests {\n    use std::sync::Mutex;\n}\n";
        assert_eq!(uses(source), [(1, "OnceLock".to_owned())]);
    }
}
