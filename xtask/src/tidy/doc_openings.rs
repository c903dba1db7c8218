//! A doc comment stands alone in a search result: it opens with a verb or a noun phrase, and not with words that need what stands
//! above it, or that ask a question. `xtask/doc-openings.txt` has the files that still do.

use super::ratchet::{Counts, Ratchet};
use crate::step::Verdict;
use crate::workspace::Workspace;

const RATCHET: Ratchet = Ratchet {
    table: "xtask/doc-openings.txt",
    step: "doc-openings",
    things: "doc comments that do not stand alone",
};

/// The first words that a doc comment must not have.
const REFUSED: [&str; 6] = ["The same", "Whether", "Who", "What", "See above", "As above"];

pub(super) fn check(workspace: &Workspace, bless: bool) -> Verdict {
    let mut counts = Counts::new();
    for (path, source) in workspace.rust_files() {
        counts.insert(path.to_owned(), refused(&source).count());
    }
    RATCHET.check(workspace, bless, &counts)
}

/// Returns the first lines of doc comments that open with words that are refused.
fn refused(source: &str) -> impl Iterator<Item = &str> {
    let mut inside = false;
    let openings = source.lines().filter_map(move |line| {
        let line = line.trim_start();
        let text = line.strip_prefix("///").or_else(|| line.strip_prefix("//!"));
        let text = text.filter(|text| !text.starts_with('/'));
        let was_inside = std::mem::replace(&mut inside, text.is_some());
        text.map(str::trim).filter(|_| !was_inside)
    });
    openings.filter(|text| {
        REFUSED.iter().any(|opening| {
            text.strip_prefix(opening)
                .is_some_and(|rest| !rest.starts_with(|letter: char| letter.is_alphanumeric()))
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_opening_of_a_doc_comment_counts() {
        let source = "//! What this is.\n\n/// Returns it.\n/// What it returns is old.\nfn f() {}\n/// The same, later.\n\
            // Whether it is code.\n//// Who draws lines.\n/// Whatever it is.\n";
        assert_eq!(refused(source).collect::<Vec<_>>(), ["What this is.", "The same, later."]);
    }

    #[test]
    fn every_refused_opening_is_found() {
        for opening in REFUSED {
            assert_eq!(refused(&format!("/// {opening}, and more.\n")).count(), 1, "{opening}");
        }
    }
}
