//! `cargo xtask sanitize`: the tests under tools that see undefined behaviour. One file for each tool.
//!
//! - `miri` interprets the program and knows the rules of the language: aliasing (Tree Borrows), provenance, data races,
//!   uninitialised memory, leaks. It has no sockets and no child processes, and it is about 500 times slower.
//! - `tsan` sees data races in compiled code, with real threads and the kernel. It knows nothing of fences.
//! - `asan` sees accesses to freed heap and stack memory in compiled code, and leaks.
//! - `valgrind` sees the same for the heap, without recompiling anything, and reads of uninitialised memory.
//! - `loom` runs the models of races with more preemptions than `cargo xtask test` allows.
//!
//! The first four are not on a fresh machine. A step installs what it needs (`nightly`, and the package manager for valgrind)
//! and is skipped with a reason where it may not; asked for by name (`--only`), it fails instead. What no tool can
//! run is listed in `left_out`, one test program a line; a single test says so itself with `cfg_attr(miri, ignore)`.
//! A selection of Miri's part is a step of `cargo xtask test` too ([`start_miri_short`]).

mod asan;
mod left_out;
mod loom;
mod miri;
mod nightly;
mod suites;
mod tsan;
mod valgrind;

pub(crate) use miri::{Short, start_short as start_miri_short};

use crate::arguments::Arguments;
use crate::step::{self, Step, Verdict};
use crate::workspace::Workspace;

/// Runs the tools that are here or can be installed; true if none found anything.
pub(crate) fn run(workspace: &Workspace, arguments: &Arguments) -> Result<bool, String> {
    left_out::check(workspace)?;
    let step = |name: &'static str, about, work: fn(&Workspace) -> Verdict| {
        let named = arguments.only.iter().any(|only| only == name);
        Step::new(name, about, move || required_if(named, work(workspace)))
    };
    let steps = vec![
        step("miri", "the rules of the language, by interpreting", miri::whole),
        step("tsan", "data races, by ThreadSanitizer", tsan::run),
        step("asan", "use after free and leaks, by AddressSanitizer", asan::run),
        step("valgrind", "use after free and leaks, by memcheck", valgrind::run),
        step("loom", "races, enumerated with all preemptions of each model", loom::run),
    ];
    let Some(steps) = step::select(steps, arguments)? else { return Ok(true) };
    Ok(step::run("sanitize", steps))
}

/// A step that was asked for by name must not be skipped in silence.
fn required_if(named: bool, verdict: Verdict) -> Verdict {
    match verdict {
        Verdict::Skipped(reason) if named => Verdict::failed(format!("cannot run: {reason}")),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_step_that_was_named_fails_for_lack_of_its_tool() {
        let skipped = || Verdict::Skipped("no rustup".into());
        assert_eq!(required_if(false, skipped()), skipped());
        assert_eq!(required_if(true, skipped()), Verdict::failed("cannot run: no rustup"));
        assert_eq!(required_if(true, Verdict::Passed(String::new())), Verdict::Passed(String::new()));
    }
}
