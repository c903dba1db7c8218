//! The measurements, printed.

use std::collections::BTreeMap;
use std::time::Duration;

use super::Weight;

/// The highest ratio to tokio that we want, for CPU time and for size.
const TIME_GOAL: f64 = 1.1;
const SIZE_GOAL: f64 = 1.3;

/// The number of crates in the second table.
const LISTED: usize = 15;

/// Returns the table of both programs.
pub(super) fn comparison(convoke: &Weight, tokio: &Weight) -> String {
    let mut table = format!("\n{:<34}{:>10}{:>10}{:>8}{:>8}\n", "", "convoke", "tokio", "ratio", "goal");
    let mut row = |what: &str, ours: f64, theirs: f64, unit: &str, goal: Option<f64>| {
        let goal = goal.map(|goal| format!("{goal:.1}")).unwrap_or_default();
        let [ours_text, theirs_text] = [ours, theirs].map(|value| quantity(value, unit));
        table += &format!("{what:<34}{ours_text:>10}{theirs_text:>10}{:>8.2}{goal:>8}\n", ours / theirs);
    };
    let seconds = |time: Duration| time.as_secs_f64();
    row(
        "clean debug build, user CPU",
        seconds(convoke.debug.time),
        seconds(tokio.debug.time),
        "s",
        Some(TIME_GOAL),
    );
    row(
        "clean release build, user CPU",
        seconds(convoke.release.time),
        seconds(tokio.release.time),
        "s",
        Some(TIME_GOAL),
    );
    row(
        "stripped release program",
        convoke.release.size as f64 / 1024.0,
        tokio.release.size as f64 / 1024.0,
        "KiB",
        Some(SIZE_GOAL),
    );
    row("crates", convoke.release.crates.len() as f64, tokio.release.crates.len() as f64, "", None);
    table
}

fn quantity(value: f64, unit: &str) -> String {
    match unit {
        "s" => format!("{value:.1} s"),
        "" => format!("{value:.0}"),
        unit => format!("{value:.0} {unit}"),
    }
}

/// Returns the table of the crates that take longest, by their release build.
pub(super) fn most_expensive(weight: &Weight) -> String {
    let debug: BTreeMap<_, _> = weight.debug.crates.iter().map(|one| (&one.name, one.time)).collect();
    let mut crates: Vec<_> = weight.release.crates.iter().collect();
    crates.sort_by_key(|one| std::cmp::Reverse(one.time));
    let mut table = format!("\n{:<34}{:>10}{:>10}\n", "crate, user CPU", "debug", "release");
    for one in crates.into_iter().take(LISTED) {
        let debug = debug.get(&one.name).copied().unwrap_or_default().as_secs_f64();
        table += &format!(
            "{:<34}{:>10}{:>10}\n",
            one.name,
            quantity(debug, "s"),
            quantity(one.time.as_secs_f64(), "s")
        );
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::weigh::clean_build::Built;
    use crate::weigh::crate_times::CrateTime;

    fn weight(seconds: u64, size: u64, crates: &[(&str, u64)]) -> Weight {
        let built = || Built {
            time: Duration::from_secs(seconds),
            size,
            crates: crates
                .iter()
                .map(|&(name, time)| CrateTime { name: name.into(), time: Duration::from_secs(time) })
                .collect(),
        };
        Weight { debug: built(), release: built() }
    }

    #[test]
    fn both_sides_and_their_ratio_are_printed() {
        let table = comparison(&weight(22, 1 << 20, &[("a", 1)]), &weight(20, 1 << 19, &[("b", 1)]));
        let lines: Vec<Vec<&str>> = table.lines().map(|line| line.split_whitespace().collect()).collect();
        assert!(
            lines.iter().any(|line| line.ends_with(&["22.0", "s", "20.0", "s", "1.10", "1.1"])),
            "{table}"
        );
        assert!(
            lines.iter().any(|line| line.ends_with(&["1024", "KiB", "512", "KiB", "2.00", "1.3"])),
            "{table}"
        );
    }

    #[test]
    fn the_most_expensive_crate_is_first() {
        let table = most_expensive(&weight(9, 1, &[("cheap", 1), ("dear", 8)]));
        assert!(table.find("dear").unwrap() < table.find("cheap").unwrap());
    }
}
