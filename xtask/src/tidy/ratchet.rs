//! A table of counts that only go down: a committed file with one line for each crate or file, and its number. `--bless` lowers the
//! numbers to what is there; a line is added, or raised, by hand only, and its reviewer asks why.

use std::collections::BTreeMap;
use std::fs;

use crate::step::Verdict;
use crate::workspace::Workspace;

/// The number of things in each crate or file.
pub(super) type Counts = BTreeMap<String, usize>;

/// A committed table of counts.
pub(super) struct Ratchet {
    /// The path of the file.
    pub(super) table: &'static str,
    /// The step that checks it.
    pub(super) step: &'static str,
    /// The things that are counted.
    pub(super) things: &'static str,
}

impl Ratchet {
    /// Compares the table with what was counted, after lowering it if `bless`.
    pub(super) fn check(&self, workspace: &Workspace, bless: bool, counts: &Counts) -> Verdict {
        let Some(mut table) = workspace.read(self.table) else {
            return Verdict::failed(format!("{} is missing", self.table));
        };
        if bless {
            table = lowered(&table, counts);
            if let Err(error) = fs::write(workspace.root.join(self.table), &table) {
                return Verdict::failed(format!("{}: {error}", self.table));
            }
        }
        let total: usize = counts.values().sum();
        Verdict::from_findings(self.judge(&table, counts), format!("{total} {}", self.things))
    }

    fn judge(&self, table: &str, counts: &Counts) -> Vec<String> {
        let Self { table: file, step, things } = self;
        let bless = format!("run `cargo xtask tidy --only {step} --bless`");
        let mut findings = Vec::new();
        let mut allowed = BTreeMap::new();
        for (index, line) in table.lines().enumerate().filter(|(_, line)| !is_prose(line)) {
            let place = format!("{file}:{}", index + 1);
            match entry(line) {
                None => findings.push(format!("{place}: `{line}` is not a name and a number")),
                Some((name, _)) if allowed.contains_key(name) => {
                    findings.push(format!("{place}: {name} is there twice"));
                }
                Some((name, number)) => _ = allowed.insert(name, number),
            }
        }
        for (name, &number) in &allowed {
            let count = counts.get(*name).copied().unwrap_or_default();
            if count < number {
                findings.push(format!("{name} is down from {number} to {count} {things}: {bless}"));
            } else if count > number {
                findings.push(format!("{name} has {count} {things}, {number} are allowed"));
            }
        }
        for (name, count) in
            counts.iter().filter(|(name, count)| **count > 0 && !allowed.contains_key(name.as_str()))
        {
            findings.push(format!("{name} has {count} {things}, and no line in {file}"));
        }
        findings
    }
}

/// Reads a line of the table. `None` for comments, empty lines and lines that are neither.
fn entry(line: &str) -> Option<(&str, usize)> {
    let (name, number) = line.trim().rsplit_once(' ')?;
    if is_prose(line) { None } else { Some((name.trim_end(), number.parse().ok()?)) }
}

fn is_prose(line: &str) -> bool {
    line.trim().is_empty() || line.trim_start().starts_with('#')
}

/// Returns the table with every number lowered to what is there, and without lines for nothing. Never adds, never raises.
fn lowered(table: &str, counts: &Counts) -> String {
    let mut lines = Vec::new();
    for line in table.lines() {
        match entry(line) {
            None => lines.push(line.to_owned()),
            Some((name, number)) => match counts.get(name).copied().unwrap_or_default() {
                0 => {}
                count => lines.push(format!("{name} {}", count.min(number))),
            },
        }
    }
    lines.into_iter().map(|line| line + "\n").collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const RATCHET: Ratchet = Ratchet { table: "table.txt", step: "step", things: "things" };

    fn counts(of: &[(&str, usize)]) -> Counts {
        of.iter().map(|&(name, count)| (name.to_owned(), count)).collect()
    }

    #[test]
    fn a_table_that_is_right_has_no_findings() {
        assert!(RATCHET.judge("# why\n\na 6\n", &counts(&[("a", 6), ("b", 0)])).is_empty());
    }

    #[test]
    fn every_way_to_be_wrong_is_found() {
        let table = "grown 6\nless 6\ngone 6\nwhat is this\nless 6\n";
        let findings = RATCHET.judge(table, &counts(&[("grown", 7), ("less", 5), ("new", 1)])).join("\n");
        for expected in [
            "grown has 7 things, 6 are allowed",
            "less is down from 6 to 5",
            "gone is down from 6 to 0",
            ":4: `what is this`",
            ":5: less is there twice",
            "new has 1 things, and no line",
        ] {
            assert!(findings.contains(expected), "{expected} in\n{findings}");
        }
    }

    #[test]
    fn blessing_only_lowers_and_removes() {
        let table = "# why\ngrown 6\nless 6\ngone 6\n";
        let lower = lowered(table, &counts(&[("grown", 7), ("less", 5), ("new", 1)]));
        assert_eq!(lower, "# why\ngrown 6\nless 5\n");
    }
}
