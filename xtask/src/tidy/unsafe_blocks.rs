//! Unsafe blocks only become fewer: `xtask/unsafe-blocks.txt` has their number for each crate.

use super::ratchet::{Counts, Ratchet};
use crate::lexer::{self, Kind};
use crate::step::Verdict;
use crate::workspace::Workspace;

const RATCHET: Ratchet =
    Ratchet { table: "xtask/unsafe-blocks.txt", step: "unsafe-blocks", things: "unsafe blocks" };

/// Not published, and full of peers that are called by hand.
const LEFT_OUT: &str = "convoke-bench";

pub(super) fn check(workspace: &Workspace, bless: bool) -> Verdict {
    let mut counts = Counts::new();
    for (path, source) in workspace.rust_files() {
        if let Some((name, _)) = path.split_once("/src/")
            && name != LEFT_OUT
            && !path.ends_with("/tests.rs")
        {
            *counts.entry(name.to_owned()).or_default() += blocks(&source);
        }
    }
    RATCHET.check(workspace, bless, &counts)
}

/// Counts `unsafe { … }` in the code of a file. Unit tests do not count.
fn blocks(source: &str) -> usize {
    let code = lexer::keep(source, &[Kind::Code]);
    let code = lexer::before_tests(&code);
    let is_word = |letter: char| letter == '_' || letter == '#' || letter.is_alphanumeric();
    code.match_indices("unsafe")
        .filter(|(at, word)| {
            !code[..*at].ends_with(is_word) && code[at + word.len()..].trim_start().starts_with('{')
        })
        .count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_counted_and_nothing_else() {
        let source = "unsafe fn f() { unsafe { g() } }\n// unsafe { }\nlet t = \"unsafe {\";\nunsafe\n{ h() }\n\
            unsafe impl Send for A {}\nr#unsafe {}\nnot_unsafe {}\n";
        assert_eq!(blocks(source), 2);
    }
}
