//! Long files only shrink. A file over the limit needs a line in `xtask/file-sizes.txt`, written by hand; from then on
//! its number can be lowered (by `--bless`) but the file may not grow over it.

use crate::step::{Verdict, counted};
use crate::workspace::Workspace;
use std::collections::BTreeMap;
use std::fs;

/// At this length one asks whether a file holds two ideas.
const LIMIT: usize = 500;
const TABLE: &str = "xtask/file-sizes.txt";
const BLESS: &str = "run `cargo xtask tidy --only sizes --bless`";

pub(super) fn check(workspace: &Workspace, bless: bool) -> Verdict {
    let Some(mut table) = workspace.read(TABLE) else {
        return Verdict::failed(format!("{TABLE} is missing"));
    };
    let sizes = workspace.rust_files().map(|(path, text)| (path.to_owned(), text.lines().count())).collect();
    if bless {
        table = lowered(&table, &sizes);
        if let Err(error) = fs::write(workspace.root.join(TABLE), &table) {
            return Verdict::failed(format!("{TABLE}: {error}"));
        }
    }
    let allowed = table.lines().filter_map(entry).count();
    Verdict::from_findings(judge(&table, &sizes), format!("{} over {LIMIT} lines", counted(allowed, "file")))
}

/// A line of the table: a path and a number. `None` for comments, empty lines and lines that are neither.
fn entry(line: &str) -> Option<(&str, usize)> {
    let (path, number) = line.trim().rsplit_once(' ')?;
    if path.starts_with('#') { None } else { Some((path.trim_end(), number.parse().ok()?)) }
}

fn is_prose(line: &str) -> bool {
    line.trim().is_empty() || line.trim_start().starts_with('#')
}

fn judge(table: &str, sizes: &BTreeMap<String, usize>) -> Vec<String> {
    let mut findings = Vec::new();
    let mut allowed = BTreeMap::new();
    for (index, line) in table.lines().enumerate().filter(|(_, line)| !is_prose(line)) {
        let place = format!("{TABLE}:{}", index + 1);
        match entry(line) {
            None => findings.push(format!("{place}: `{line}` is not a path and a number")),
            Some((path, number)) => {
                if allowed.insert(path, number).is_some() {
                    findings.push(format!("{place}: {path} is there twice"));
                }
            }
        }
    }
    for (path, &number) in &allowed {
        match sizes.get(*path) {
            None => findings.push(format!("{path} is gone: {BLESS}")),
            Some(&size) if size <= LIMIT => {
                findings.push(format!("{path} has shrunk to {size} lines and needs no entry: {BLESS}"));
            }
            Some(&size) if size < number => {
                findings.push(format!("{path} has shrunk from {number} to {size} lines: {BLESS}"));
            }
            Some(&size) if size > number => {
                findings.push(format!("{path} has grown to {size} lines, {number} are allowed: split it"));
            }
            Some(_) => {}
        }
    }
    for (path, size) in sizes.iter().filter(|(_, size)| **size > LIMIT) {
        if !allowed.contains_key(path.as_str()) {
            findings.push(format!("{path} has {size} lines, over {LIMIT}: is it two ideas?"));
        }
    }
    findings
}

/// The table with every number lowered to what is there now, and without the entries nobody needs. Never adds, never
/// raises; comments stay.
fn lowered(table: &str, sizes: &BTreeMap<String, usize>) -> String {
    let mut lines = Vec::new();
    for line in table.lines() {
        match entry(line) {
            None => lines.push(line.to_owned()),
            Some((path, number)) => match sizes.get(path) {
                Some(&size) if size > LIMIT => lines.push(format!("{path} {}", size.min(number))),
                _ => {}
            },
        }
    }
    lines.into_iter().map(|line| line + "\n").collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sizes(files: &[(&str, usize)]) -> BTreeMap<String, usize> {
        files.iter().map(|&(path, size)| (path.to_owned(), size)).collect()
    }

    #[test]
    fn a_file_at_its_number_is_fine() {
        assert!(judge("# why\n\na.rs 600\n", &sizes(&[("a.rs", 600), ("b.rs", 500)])).is_empty());
    }

    #[test]
    fn every_way_to_be_wrong_is_found() {
        let table = "grown.rs 600\nless.rs 600\nshort.rs 600\ngone.rs 600\nwhat is this\nless.rs 600\n";
        let sizes = sizes(&[("grown.rs", 601), ("less.rs", 550), ("short.rs", 400), ("new.rs", 501)]);
        let findings = judge(table, &sizes).join("\n");
        for expected in [
            "grown.rs has grown to 601",
            "less.rs has shrunk from 600 to 550",
            "short.rs has shrunk to 400",
            "gone.rs is gone",
            ":5: `what is this`",
            ":6: less.rs is there twice",
            "new.rs has 501 lines",
        ] {
            assert!(findings.contains(expected), "{expected} in\n{findings}");
        }
    }

    #[test]
    fn blessing_only_lowers_and_removes() {
        let table = "# why\ngrown.rs 600\nless.rs 600\nshort.rs 600\ngone.rs 600\n";
        let sizes = sizes(&[("grown.rs", 601), ("less.rs", 550), ("short.rs", 400), ("new.rs", 501)]);
        assert_eq!(lowered(table, &sizes), "# why\ngrown.rs 600\nless.rs 550\n");
    }
}
