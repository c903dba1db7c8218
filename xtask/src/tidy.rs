//! `cargo xtask tidy`: the house style, as far as a program can check it. One file for each rule.

mod cargo_checks;
mod doc_openings;
mod file_sizes;
mod layering;
mod map;
mod modules;
mod pinned_fields;
mod ratchet;
mod rust_version;
mod safety_comments;
mod shared_state;
mod type_names;
mod unsafe_blocks;
mod words;

use crate::arguments::Arguments;
use crate::step::{self, Step};
use crate::workspace::Workspace;

/// Runs the checks; true if all of them passed.
pub(crate) fn run(workspace: &Workspace, arguments: &Arguments) -> Result<bool, String> {
    let bless = arguments.bless;
    // The quick ones first: what they find is on the screen while the compiler still works.
    let steps = vec![
        Step::new("layering", "dependencies only point to a lower floor", || layering::check(workspace)),
        Step::new("modules", "modules of a crate do not need each other in a circle", || {
            modules::check(workspace)
        }),
        Step::new("shared-state", "threads share nothing that loom cannot see", || {
            shared_state::check(workspace)
        }),
        Step::new("unsafe-blocks", "unsafe blocks only become fewer", move || {
            unsafe_blocks::check(workspace, bless)
        }),
        Step::new("safety", "SAFETY comments name a fact", || safety_comments::check(workspace)),
        Step::new("type-names", "nothing depends on the name of a type, or on the order of variants", || {
            type_names::check(workspace)
        }),
        Step::new("pinned-fields", "no field is read beside a projection of a pinned `self`", || {
            pinned_fields::check(workspace)
        }),
        Step::new("doc-openings", "doc comments stand alone", move || doc_openings::check(workspace, bless)),
        Step::new("map", "the documents speak of files that are there", || map::check(workspace)),
        Step::new("sizes", "long files only shrink", move || file_sizes::check(workspace, bless)),
        Step::new("words", "names, leftovers, paths of one machine, opening lines", || {
            words::check(workspace)
        }),
        Step::new("rust-version", "one promise on the oldest Rust, stated by every crate", || {
            rust_version::check(workspace)
        }),
        Step::new("fmt", "formatting", || cargo_checks::fmt(workspace)),
        Step::new("clippy", "lints of everything but the models", || cargo_checks::clippy(workspace)),
        Step::new("clippy-loom", "lints of the model-checked build", || cargo_checks::clippy_loom(workspace)),
        Step::new("doc", "documentation without warnings", || cargo_checks::doc(workspace)),
    ];
    let Some(steps) = step::select(steps, arguments)? else { return Ok(true) };
    Ok(step::run("tidy", steps))
}
