//! The files that may hold `unsafe` are listed, with a reason each, in ARCHITECTURE.md. The list is exact both ways: a
//! file that is not on it fails, and so does an entry whose file no longer needs it.

use crate::lexer::{self, Kind};
use crate::step::{Verdict, counted};
use crate::workspace::Workspace;
use std::collections::BTreeMap;

const DOCUMENT: &str = "ARCHITECTURE.md";
const HEADING: &str = "## Files that may hold unsafe";

pub(super) fn check(workspace: &Workspace) -> Verdict {
    let Some(document) = workspace.read(DOCUMENT) else {
        return Verdict::failed(format!(
            "{DOCUMENT} is missing; it holds the list of files that may hold unsafe"
        ));
    };
    let (listed, mut findings) = read_list(&document);
    let mut uses = BTreeMap::new();
    for (path, source) in workspace.rust_files() {
        uses.insert(path.to_owned(), first_use(&source));
    }
    findings.extend(compare(&listed, &uses));
    Verdict::from_findings(findings, format!("{} listed", counted(listed.len(), "file")))
}

/// The line of the first `unsafe` that is code.
fn first_use(source: &str) -> Option<usize> {
    let code = lexer::keep(source, &[Kind::Code]);
    lexer::words(&code).find(|(_, word)| *word == "unsafe").map(|(line, _)| line)
}

/// The paths under the heading, and what is wrong with the list itself.
fn read_list(document: &str) -> (Vec<String>, Vec<String>) {
    let (mut listed, mut findings) = (Vec::new(), Vec::new());
    let mut lines = document.lines().enumerate().skip_while(|(_, line)| line.trim_end() != HEADING);
    if lines.next().is_none() {
        findings.push(format!("{DOCUMENT} has no section `{HEADING}`"));
    }
    let section = lines.take_while(|(_, line)| !line.starts_with("# ") && !line.starts_with("## "));
    for (index, line) in section {
        let Some(bullet) = line.strip_prefix("- ").or_else(|| line.strip_prefix("* ")) else { continue };
        let entry = bullet.trim_start().strip_prefix('`').and_then(|rest| rest.split_once('`'));
        let place = format!("{DOCUMENT}:{}", index + 1);
        match entry {
            None => findings.push(format!("{place}: a bullet here begins with a path in backticks")),
            Some((path, _)) if listed.iter().any(|other| other == path) => {
                findings.push(format!("{place}: {path} is listed twice"));
            }
            Some((path, why)) => {
                if !why.contains(char::is_alphabetic) {
                    findings.push(format!("{place}: {path} is listed without a reason"));
                }
                listed.push(path.to_owned());
            }
        }
    }
    (listed, findings)
}

/// Holds the list against the files; the map says for each file on which line it first uses unsafe, if it does.
fn compare(listed: &[String], uses: &BTreeMap<String, Option<usize>>) -> Vec<String> {
    let mut findings = Vec::new();
    for (path, line) in uses {
        if let Some(line) = line
            && !listed.contains(path)
        {
            findings.push(format!("{path}:{line}: unsafe, but {DOCUMENT} does not list the file"));
        }
    }
    for path in listed {
        match uses.get(path) {
            None => findings.push(format!("{DOCUMENT} lists {path}, which does not exist")),
            Some(None) => findings.push(format!("{DOCUMENT} lists {path}, which holds no unsafe any more")),
            Some(Some(_)) => {}
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    fn uses(files: &[(&str, &str)]) -> BTreeMap<String, Option<usize>> {
        files.iter().map(|(path, source)| ((*path).to_owned(), first_use(source))).collect()
    }

    #[test]
    fn the_list_ends_where_the_section_ends() {
        let document = format!(
            "# A\n- `x.rs`: no\n{HEADING}\n\nText.\n\n- `a.rs`: slots\n  more\n- `b.rs` links\n## B\n- `c.rs`: no\n"
        );
        assert_eq!(read_list(&document), (vec!["a.rs".into(), "b.rs".into()], vec![]));
    }

    #[test]
    fn a_bad_list_is_told_so() {
        let document = format!("{HEADING}\n- a.rs\n- `b.rs`\n- `c.rs`: why\n- `c.rs`: why\n");
        assert_eq!(read_list(&document).1.len(), 3);
        assert_eq!(read_list("# nothing").1.len(), 1);
    }

    #[test]
    fn unlisted_stale_and_missing_files_are_found() {
        let uses = uses(&[
            ("fine.rs", "unsafe { f() }"),
            ("new.rs", "// unsafe\nunsafe impl Send for A {}"),
            ("safe.rs", "#![forbid(unsafe_code)] // unsafe"),
        ]);
        let listed = ["fine.rs", "safe.rs", "gone.rs"].map(String::from);
        let findings = compare(&listed, &uses);
        assert_eq!(findings.len(), 3);
        assert!(findings[0].starts_with("new.rs:2:"));
        assert!(findings[1].contains("safe.rs, which holds no unsafe"));
        assert!(findings[2].contains("gone.rs, which does not exist"));
        assert!(compare(&listed[..1], &super::tests::uses(&[("fine.rs", "unsafe {}")])).is_empty());
    }
}
