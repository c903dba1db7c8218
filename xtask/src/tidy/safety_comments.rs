//! A SAFETY comment names the fact, and who made it true. One that only points elsewhere ("the caller's", "as above", "by
//! construction") proves nothing.

use crate::step::{Verdict, counted};
use crate::workspace::Workspace;

/// Words that name no fact. A comment that has no others is empty.
const EMPTY: [&str; 29] = [
    "above",
    "as",
    "by",
    "caller",
    "callers",
    "construction",
    "contract",
    "ensures",
    "for",
    "guarantee",
    "guarantees",
    "here",
    "is",
    "it",
    "of",
    "our",
    "promise",
    "promises",
    "reason",
    "s",
    "same",
    "see",
    "so",
    "that",
    "the",
    "this",
    "too",
    "upholds",
    "was",
];

pub(super) fn check(workspace: &Workspace) -> Verdict {
    let (mut findings, mut count) = (Vec::new(), 0);
    for (path, source) in workspace.rust_files() {
        for (line, text) in comments(&source) {
            count += 1;
            if is_empty(&text) {
                let text = text.trim();
                findings.push(format!(
                    "{path}:{line}: `SAFETY: {text}` names no fact: say what holds, and who made it true"
                ));
            }
        }
    }
    Verdict::from_findings(findings, counted(count, "comment"))
}

/// Returns the SAFETY comments of a file: the line of each, and its text up to the end of the comment.
fn comments(source: &str) -> Vec<(usize, String)> {
    let mut found: Vec<(usize, String)> = Vec::new();
    let mut inside = false;
    for (index, line) in source.lines().map(str::trim).enumerate() {
        let comment = line.strip_prefix("//").filter(|rest| !rest.starts_with(['/', '!']));
        match comment.map(|text| text.trim_start().strip_prefix("SAFETY:").ok_or(text)) {
            Some(Ok(text)) => {
                found.push((index + 1, text.to_owned()));
                inside = true;
            }
            Some(Err(text)) if inside => found.last_mut().expect("inside of one").1.push_str(text),
            _ => inside = false,
        }
    }
    found
}

fn is_empty(text: &str) -> bool {
    let text = text.to_lowercase();
    let mut words = text.split(|letter: char| !letter.is_alphanumeric()).filter(|word| !word.is_empty());
    words.all(|word| EMPTY.contains(&word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_caller_alone_is_refused() {
        for text in [" the caller's.", " the caller", " the caller's promise.", " The caller guarantees it."]
        {
            assert!(is_empty(text), "{text}");
        }
    }

    #[test]
    fn above_alone_is_refused() {
        for text in [" as above.", " see above", " the same as above", ""] {
            assert!(is_empty(text), "{text}");
        }
    }

    #[test]
    fn by_construction_alone_is_refused() {
        assert!(is_empty(" by construction."));
    }

    #[test]
    fn a_fact_with_its_witness_is_fine() {
        for text in [
            " rule 3: the future is ours while RUNNING is set, and `begin` above set it.",
            " the caller owns the node, by the contract of `push`.",
        ] {
            assert!(!is_empty(text), "{text}");
        }
    }

    #[test]
    fn a_comment_goes_on_over_its_lines() {
        let source = "// SAFETY: as above,\n// and the lock is held.\nunsafe {}\n    // SAFETY: as above.\n/// SAFETY: doc\n";
        let found = comments(source);
        assert_eq!(found.len(), 2);
        assert_eq!((found[0].0, is_empty(&found[0].1)), (1, false));
        assert_eq!((found[1].0, is_empty(&found[1].1)), (4, true));
    }
}
