//! The example programs of the four C++ papers behind Convoke, in Rust.
//! `README.md`, beside this file, is their table of contents.
//!
//! ```text
//! cargo run --example papers --features full                    # all of them
//! cargo run --example papers --features full -- p3552::hello    # one
//! ```

mod p1662;
mod p3149;
mod p3552;
mod p4003;

use std::process::ExitCode;

/// A program of a paper.
pub(crate) struct Example {
    /// Paper and file, as `p3552::hello`.
    pub(crate) name: &'static str,
    /// Section of the paper that it follows.
    pub(crate) section: &'static str,
    /// Runs it, and returns what it prints.
    pub(crate) run: fn() -> String,
}

impl Example {
    const fn new(
        name: &'static str,
        section: &'static str, // As its paper numbers it, or else the page.
        run: fn() -> String,
    ) -> Self {
        Self { name, section, run }
    }
}

/// Returns all programs, by paper, in the order of their sections.
pub(crate) fn examples() -> impl Iterator<Item = &'static Example> {
    let first = p3552::EXAMPLES.iter().chain(p4003::EXAMPLES);
    first.chain(p3149::EXAMPLES).chain(p1662::EXAMPLES)
}

fn main() -> ExitCode {
    let wanted = std::env::args().nth(1);
    let mut ran = false;
    for one in examples() {
        if wanted.as_deref().is_none_or(|name| name == one.name) {
            println!("{:<25} {:<6} {}", one.name, one.section, (one.run)());
            ran = true;
        }
    }
    if !ran {
        eprintln!("There is no such example. There are:");
        examples().for_each(|one| eprintln!("    {}", one.name));
    }
    if ran { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
